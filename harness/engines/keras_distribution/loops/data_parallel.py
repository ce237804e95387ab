"""`DataParallel`: weights on every device, batches cut over them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.engines.keras_distribution.loops.base import DistributionWay
from harness.errors import Unsupported
from harness.spec.mesh import Mesh

if TYPE_CHECKING:
    import keras


class DataParallelWay(DistributionWay):
    """Over a mesh of one axis."""

    def distribution(self, devices: Sequence[str], mesh: Mesh) -> "keras.distribution.Distribution":
        """See `DistributionWay`."""
        if mesh.model > 1:
            raise Unsupported(
                f"loop 'data_parallel' cuts no weights, and the mesh is {mesh.text}: --loop model_parallel"
            )
        import keras

        return keras.distribution.DataParallel(devices=list(devices), auto_shard_dataset=False)


LOOP = DataParallelWay("data_parallel", "keras.distribution.DataParallel under Model.fit")
