"""Cross-device ops, and a user's own as `package.module:function`."""

from collections.abc import Mapping
from typing import Any, cast

from harness.engines.tensorflow.cross_device.base import CrossDeviceOp
from harness.registry import load_attribute, registered
from harness.spec.work import DistributedCell


def cross_device_ops() -> Mapping[str, CrossDeviceOp]:
    """Every registered op by name."""
    return cast(Mapping[str, CrossDeviceOp], registered(__name__, "OP"))


def build_op(cell: DistributedCell) -> Any:
    """The tf.distribute.CrossDeviceOps of `cell`, or None for TensorFlow's own choice."""
    key, _, value = cell.packing.partition("=")
    if ":" in cell.cross_device_op:
        return load_attribute("cross_device_op", cell.cross_device_op)()
    return cross_device_ops()[cell.cross_device_op].build(int(value) if key == "num_packs" else None)


__all__ = ["CrossDeviceOp", "build_op", "cross_device_ops"]
