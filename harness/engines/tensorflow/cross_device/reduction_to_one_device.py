"""ReductionToOneDevice: copy every gradient to one device, add, copy back."""

from typing import Any

from harness.engines.tensorflow.cross_device.base import CrossDeviceOp
from harness.spec.catalogue import CrossDeviceOpTraits


def _build(_: int | None) -> Any:
    import tensorflow as tf

    return tf.distribute.ReductionToOneDevice()


OP = CrossDeviceOp(
    CrossDeviceOpTraits("reduction_to_one_device", "tf.distribute.ReductionToOneDevice", strategies=("mirrored",)),
    _build,
    promises=("AddN",),
)
