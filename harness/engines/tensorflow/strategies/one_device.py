"""OneDeviceStrategy: tf.distribute's machinery with one replica."""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.strategies.base import Strategy
from harness.spec.catalogue import StrategyTraits
from harness.spec.work import DistributedCell

if TYPE_CHECKING:
    import tensorflow as tf


class OneDevice(Strategy):
    """tf.distribute.OneDeviceStrategy on the first device."""

    traits = StrategyTraits("one_device", "tf.distribute.OneDeviceStrategy", instruments=True, max_replicas=1)

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """One replica on the first device."""
        import tensorflow as tf

        return tf.distribute.OneDeviceStrategy(devices.names[0])


STRATEGY = OneDevice()
