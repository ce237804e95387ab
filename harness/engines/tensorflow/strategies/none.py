"""No strategy: a plain tf.function step on one device. The base case of every speed-up."""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.strategies.base import Strategy
from harness.spec.catalogue import StrategyTraits
from harness.spec.work import DistributedCell

if TYPE_CHECKING:
    import tensorflow as tf


class NoStrategy(Strategy):
    """TensorFlow's default strategy, which is what a program without tf.distribute runs under."""

    traits = StrategyTraits(
        "none",
        "a plain tf.function step, no tf.distribute",
        instruments=True,
        max_replicas=1,
        no_faults="it is one process with one replica, and 'one_device' is that under tf.distribute",
    )

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """The default strategy; the step places itself on the first device."""
        import tensorflow as tf

        return tf.distribute.get_strategy()


STRATEGY = NoStrategy()
