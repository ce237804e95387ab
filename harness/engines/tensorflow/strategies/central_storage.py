"""CentralStorageStrategy: variables in one place, computation on every device."""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.strategies.base import Strategy
from harness.spec.catalogue import StrategyTraits
from harness.spec.work import DistributedCell

if TYPE_CHECKING:
    import tensorflow as tf


class CentralStorage(Strategy):
    """tf.distribute.experimental.CentralStorageStrategy; it reduces gradients on the parameter device."""

    traits = StrategyTraits(
        "central_storage",
        "tf.distribute.experimental.CentralStorageStrategy",
        instruments=True,
        devices=("gpu", "virtual-gpu", "virtual-cpu"),
        copies_to_host="the variables are on the host, and gradients go there",
    )

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """Variables on the host when there are several devices, as TensorFlow does by default."""
        import tensorflow as tf

        host = "/device:CPU:0" if len(devices.names) > 1 else devices.names[0]
        return tf.distribute.experimental.CentralStorageStrategy(
            compute_devices=list(devices.names), parameter_device=host
        )


STRATEGY = CentralStorage()
