"""MultiWorkerMirroredStrategy: synchronous replicas in several processes."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.membership import cluster_resolver
from harness.engines.tensorflow.strategies.base import Strategy
from harness.errors import Unsupported
from harness.spec.catalogue import StrategyTraits
from harness.spec.work import DistributedCell

if TYPE_CHECKING:
    import tensorflow as tf


class MultiWorkerMirrored(Strategy):
    """tf.distribute.MultiWorkerMirroredStrategy; every worker is a process that runs the same program."""

    traits = StrategyTraits(
        "multi_worker_mirrored",
        "tf.distribute.MultiWorkerMirroredStrategy, a process a worker",
        takes_cross_device_op=True,
        multi_worker=True,
        packing="bytes_per_pack",
        collectives=True,
        instruments=True,
        devices=("gpu", "virtual-cpu"),
    )

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """Joins the cluster in TF_CONFIG; returns when all its workers are there."""
        import tensorflow as tf

        if cell.cross_device_op == "nccl" and cell.device != "gpu":
            raise Unsupported(
                f"cross_device_op 'nccl' reduces between NVIDIA GPUs, and the workers' devices are '{cell.device}': "
                "TensorFlow has no NCCL kernel for processors"
            )
        implementation = tf.distribute.experimental.CommunicationImplementation[cell.cross_device_op.upper()]
        packed = int(cell.packing.partition("=")[2]) if cell.packing != "default" else 0
        options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=packed, implementation=implementation)
        resolver = cluster_resolver()
        with _local_devices(len(devices.names), cell.device):
            return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver, communication_options=options)

    def devices_of(self, built: "tf.distribute.Strategy", devices: Devices) -> Devices:
        """The names that this worker's devices have in the cluster."""
        return dataclasses.replace(devices, names=tuple(built.extended.worker_devices))

    def agree(self, built: "tf.distribute.Strategy") -> Callable[[float], float]:
        """The mean over all replicas, the same number on each: what depends on it is decided alike everywhere."""
        import tensorflow as tf

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def mean(value: Any) -> Any:
            def replica(own: Any) -> Any:
                # what is reduced must lie on the replica's device: the argument lies on none
                return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, tf.identity(own))

            return built.experimental_local_results(built.run(replica, args=(value,)))[0]

        return lambda value: float(mean(tf.constant(value, tf.float32)).numpy())


@contextlib.contextmanager
def _local_devices(count: int, device: str) -> Iterator[None]:
    """While entered, a worker on processors takes `count` logical devices.

    TensorFlow gives such a worker one device, whatever there is, and has no option for it
    (`CollectiveAllReduceExtended._initialize_local_devices`); on GPUs it takes all that are visible.
    """
    if device != "virtual-cpu" or count == 1:
        yield
        return
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended as Extended

    def initialise(_: Any, __: Any, worker_device: str) -> tuple[tuple[str, ...], str]:
        return tuple(f"{worker_device}/device:CPU:{i}" for i in range(count)), "CPU"

    before = Extended._initialize_local_devices
    Extended._initialize_local_devices = initialise
    try:
        yield
    finally:
        Extended._initialize_local_devices = before


STRATEGY = MultiWorkerMirrored()
