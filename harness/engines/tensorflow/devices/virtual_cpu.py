"""Logical devices on the processor: what a strategy costs, without a GPU."""

import os
from typing import TYPE_CHECKING

from harness.engines.tensorflow.devices.base import DeviceKind, Devices, ServerDevices, set_threads
from harness.environment import usable_cores
from harness.spec.catalogue import VIRTUAL_CPU, DeviceTraits

if TYPE_CHECKING:
    from harness.protocol.messages import Membership, Request


class VirtualCpu(DeviceKind):
    """One logical CPU a replica. With one intra-op thread a replica uses about one core."""

    traits = DeviceTraits(
        VIRTUAL_CPU,
        "logical devices on the processor; they share its cores",
        on_processors=True,
        virtual=True,
        cores=usable_cores(),
    )

    def available(self) -> str | None:
        """Always available."""
        return None

    def set_up(self, request: "Request") -> Devices:
        """Split the one physical CPU into a logical device a replica, or one a shard of a replica on a mesh."""
        import tensorflow as tf

        set_threads(request)
        tf.config.set_visible_devices([], "GPU")
        count = request.cell.devices
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * count
        )
        # Listing the devices would start the runtime, which a cluster's process must join its cluster before.
        names = tuple(f"/device:CPU:{i}" for i in range(count))
        if request.member is None:
            names = tuple(device.name for device in tf.config.list_logical_devices("CPU"))
        physical = _processors(request)
        return Devices(names, physical, shared=request.cell.devices_in_sync > physical)

    def server_devices(self, request: "Request", member: "Membership") -> ServerDevices:
        """No GPU, whatever the host has."""
        return ServerDevices(super().server_devices(request, member).config, physical=_processors(request))


def _processors(request: "Request") -> int:
    return max(1, len(os.sched_getaffinity(0)) // max(1, request.intra_op_threads))


DEVICE = VirtualCpu()
