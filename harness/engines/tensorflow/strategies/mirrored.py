"""MirroredStrategy: synchronous replicas of every variable, one process."""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.strategies.base import Strategy
from harness.spec.catalogue import StrategyTraits
from harness.spec.cell import TrainingCell

if TYPE_CHECKING:
    import tensorflow as tf


class Mirrored(Strategy):
    """tf.distribute.MirroredStrategy over the replicas' devices."""

    traits = StrategyTraits(
        "mirrored",
        "tf.distribute.MirroredStrategy",
        takes_cross_device_op=True,
        devices=("gpu", "virtual-gpu", "virtual-cpu"),
    )

    def build(self, cell: TrainingCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """Mirrored variables on every device; None leaves the choice of op to TensorFlow."""
        import tensorflow as tf

        strategy = tf.distribute.MirroredStrategy(list(devices.names), cross_device_ops=cross_device_op)
        if cell.packing.startswith("bytes_per_pack="):
            _pack_by_bytes(strategy, int(cell.packing.partition("=")[2]))
        return strategy


def _pack_by_bytes(strategy: "tf.distribute.Strategy", bytes_per_pack: int) -> None:
    """Make every batched reduction use `bytes_per_pack`, the optimizer's own included.

    MirroredStrategy takes no CommunicationOptions (only MultiWorkerMirroredStrategy does), and Keras
    reduces gradients without any, so they are set where MirroredStrategy itself sets its implementation.
    The record's `executed.pack_bytes` shows what came of it.
    """
    import tensorflow as tf

    extended = strategy.extended
    extended._communication_options = extended._communication_options.merge(
        tf.distribute.experimental.CommunicationOptions(bytes_per_pack=bytes_per_pack)
    )


STRATEGY = Mirrored()
