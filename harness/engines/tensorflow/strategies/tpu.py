"""TPUStrategy: one replica a TPU core."""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.strategies.base import Strategy
from harness.errors import Unsupported
from harness.spec.catalogue import StrategyTraits
from harness.spec.work import DistributedCell

if TYPE_CHECKING:
    import tensorflow as tf


class Tpu(Strategy):
    """tf.distribute.TPUStrategy over the first n cores."""

    traits = StrategyTraits(
        "tpu",
        "tf.distribute.TPUStrategy",
        no_faults="a TPU host is taken away and given back by its cloud, and there was none to try that on",
    )

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """A device assignment of n cores in the resolver's topology."""
        import tensorflow as tf

        if devices.resolver is None:
            from harness.engines.tensorflow.devices.tpu import connect

            connect("local")
            raise Unsupported(f"strategy 'tpu' runs on TPU cores, not on '{cell.device}': use --device tpu")
        assignment = tf.tpu.experimental.DeviceAssignment.build(devices.topology, num_replicas=cell.replicas)
        return tf.distribute.TPUStrategy(devices.resolver, experimental_device_assignment=assignment)


STRATEGY = Tpu()
