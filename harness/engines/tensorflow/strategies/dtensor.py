"""DTensor: one program over a mesh of devices, which TensorFlow cuts as the tensors' layouts say."""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.strategies.base import Strategy
from harness.errors import Unsupported
from harness.spec.catalogue import StrategyTraits
from harness.spec.cell import trained
from harness.spec.mesh import Mesh
from harness.spec.work import DistributedCell
from harness.trial.sums import ANY_MODEL, Tensors

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.engines.tensorflow.mesh import DeviceMesh


class DTensor(Strategy):
    """tf.experimental.dtensor. It is no tf.distribute.Strategy: what `build` gives is a `DeviceMesh`."""

    traits = StrategyTraits(
        "dtensor",
        "tf.experimental.dtensor: data parallel, model parallel or both on a mesh of devices",
        meshes=True,
        devices=("gpu", "virtual-cpu"),
        copies_to_host="DTensor keeps a step's constants on the device, and kernels want them on the host",
    )

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """A mesh of all devices with the axes `batch` and `model`."""
        from tensorflow.experimental import dtensor

        from harness.engines.tensorflow.mesh import DeviceMesh

        training = trained(cell)
        if training.xla:
            raise Unsupported("strategy 'dtensor' does not run with --xla true: DTensor itself compiles what it cuts")
        sizes = Mesh.parse(training.mesh) if training.mesh else Mesh(batch=cell.replicas)
        mesh = dtensor.create_mesh([("batch", sizes.batch), ("model", sizes.model)], devices=list(devices.names))
        return DeviceMesh(mesh, sizes)

    def check_reduction(self, built: "tf.distribute.Strategy", tensors: Tensors = ANY_MODEL) -> str | None:
        """Sums over each axis of the mesh, of known values, distinct for each index on it."""
        on: DeviceMesh = built
        for axis, size in (("batch", on.sizes.batch), ("model", on.sizes.model)):
            if evidence := _check_sum(on, axis, size):
                return f"along '{axis}': {evidence}"
        return None


def _check_sum(on: "DeviceMesh", axis: str, size: int) -> str | None:
    """Every index along `axis` holds its weight times the patterns; the sum over it must reach all devices."""
    import tensorflow as tf
    from tensorflow.experimental import dtensor

    from harness.trial.sums import judge_sums, known_values

    weights, patterns = known_values(size)

    def on_mesh(pattern: Any) -> Any:
        rows = range(on.sizes.batch)
        parts = [[weights[r if axis == "batch" else m] * pattern[None] for m in range(on.sizes.model)] for r in rows]
        return on.pack(parts, [axis, *[dtensor.UNSHARDED] * pattern.ndim])

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def reduce_all(values: list[Any]) -> Any:
        sums = [tf.reduce_sum(value, axis=0) for value in values]
        return [dtensor.relayout(total, dtensor.Layout.replicated(on.mesh, rank=total.shape.rank)) for total in sums]

    reduced = reduce_all([on_mesh(pattern.astype("float32")) for pattern in patterns])
    received = [[part for row in on.unpack(total) for part in row] for total in reduced]
    return judge_sums(received, patterns, weights)


STRATEGY = DTensor()
