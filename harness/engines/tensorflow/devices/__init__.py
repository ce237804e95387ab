"""Kinds of device, one file each: how many there are, and what replicas get."""

from collections.abc import Mapping
from typing import cast

from harness.engines.tensorflow.devices.base import DeviceKind, Devices
from harness.registry import registered


def device_kinds() -> Mapping[str, DeviceKind]:
    """Every registered device kind by name."""
    return cast(Mapping[str, DeviceKind], registered(__name__, "DEVICE"))


__all__ = ["DeviceKind", "Devices", "device_kinds"]
