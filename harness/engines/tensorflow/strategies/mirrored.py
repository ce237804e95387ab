"""MirroredStrategy: synchronous replicas of every variable, one process."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.strategies.base import Strategy
from harness.errors import Unsupported
from harness.spec.catalogue import StrategyTraits
from harness.spec.work import DistributedCell

if TYPE_CHECKING:
    import tensorflow as tf


class Mirrored(Strategy):
    """tf.distribute.MirroredStrategy over the replicas' devices."""

    traits = StrategyTraits(
        "mirrored",
        "tf.distribute.MirroredStrategy",
        takes_cross_device_op=True,
        takes_own_op=True,
        collectives=True,
        instruments=True,
        devices=("gpu", "virtual-gpu", "virtual-cpu"),
    )

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """Mirrored variables on every device; None leaves the choice of op to TensorFlow."""
        import tensorflow as tf

        if cell.cross_device_op == "nccl" and cell.device == "virtual-gpu" and cell.replicas > 1:
            raise Unsupported(
                "cross_device_op 'nccl' takes a card a rank, and the replicas of 'virtual-gpu' share one: use auto, "
                "hierarchical_copy or reduction_to_one_device"
            )
        with _own_cards(cell.device):
            strategy = tf.distribute.MirroredStrategy(list(devices.names), cross_device_ops=cross_device_op)
        if cell.packing.startswith("bytes_per_pack="):
            _pack_by_bytes(strategy, int(cell.packing.partition("=")[2]))
        return strategy


@contextlib.contextmanager
def _own_cards(device: str) -> Iterator[None]:
    """While entered, on virtual GPUs, TensorFlow counts the cards that this process may see and no others.

    It takes NCCL where there are no more logical GPUs than cards, and counts all cards of the host: where there are
    several it would put two ranks of NCCL on one, which NCCL refuses.
    """
    from tensorflow.python.eager import context

    if device != "virtual-gpu":
        yield
        return
    runtime = context.context()
    before = runtime.list_physical_devices
    runtime.list_physical_devices = runtime.get_visible_devices
    try:
        yield
    finally:
        runtime.list_physical_devices = before


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
