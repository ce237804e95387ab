"""`ModelParallel`: weights cut as a layout map says, batches over the mesh's other axis."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.engines.keras_distribution.loops.base import BATCH, MODEL, DistributionWay
from harness.errors import Unsupported
from harness.spec.mesh import Mesh

if TYPE_CHECKING:
    import keras

LAYOUT: Mapping[str, tuple[str | None, ...]] = MappingProxyType(
    {
        ".*dense.*kernel": (None, MODEL),
        ".*dense.*bias": (MODEL,),
        ".*conv2d.*kernel": (None, None, None, MODEL),
        ".*conv2d.*bias": (MODEL,),
    }
)
"""The layout map of Keras' documentation of `ModelParallel`. A key must match the whole path of a variable."""


class ModelParallelWay(DistributionWay):
    """Over a mesh of two axes."""

    layout: Mapping[str, tuple[str | None, ...]] = LAYOUT

    def distribution(self, devices: Sequence[str], mesh: Mesh) -> "keras.distribution.Distribution":
        """See `DistributionWay`."""
        if mesh.model == 1:
            raise Unsupported(
                "loop 'model_parallel': one device a replica has nothing to cut; give --mesh model:2 or batch:2,model:2"
            )
        import keras

        grid = keras.distribution.DeviceMesh((mesh.batch, mesh.model), (BATCH, MODEL), list(devices))
        layouts = keras.distribution.LayoutMap(grid)
        for paths, axes in self.layout.items():
            layouts[paths] = axes
        return keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name=BATCH, auto_shard_dataset=False)

    def unlike(self) -> dict[str, str]:
        """DTensor's layouts cut by rows, too."""
        return {"layout": "as Keras documents it: dense layers and convolutions are cut by their outputs"}


LOOP = ModelParallelWay("model_parallel", "keras.distribution.ModelParallel under Model.fit, on a --mesh")
