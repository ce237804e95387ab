"""Physical GPUs, one a replica."""

import os
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import (
    DeviceKind,
    Devices,
    ServerDevices,
    let_memory_grow,
    no_gpu_reason,
    set_threads,
)
from harness.errors import Unsupported
from harness.spec.catalogue import DeviceTraits

if TYPE_CHECKING:
    from harness.protocol.messages import Membership, Request

MESH_USES_NCCL = "DTENSOR_GPU_USE_NCCL_COMMUNICATION"
"""The variable by which DTensor's collectives between GPUs are NCCL's."""


class Gpu(DeviceKind):
    """Memory growth is on: trials that are alive together must not each take the whole card."""

    traits = DeviceTraits("gpu", "physical GPUs, one a replica", live_trials=4)

    def available(self) -> str | None:
        """None where TensorFlow sees a GPU."""
        return no_gpu_reason()

    def set_up(self, request: "Request") -> Devices:
        """Take the GPUs that are this process's, of those that TensorFlow finds (CUDA_VISIBLE_DEVICES is honoured):
        the first n, or those from its `first_device` on where several processes share a host."""
        import tensorflow as tf

        set_threads(request)
        if request.member is not None and request.member.task == "chief":
            # It computes nothing: its host need not have a GPU, and one that is there is its workers'.
            tf.config.set_visible_devices([], "GPU")
            return Devices(("/device:GPU:0",), physical=1, shared=False)
        found, own = _share_of(request, request.member)
        tf.config.set_visible_devices(own, "GPU")
        let_memory_grow(own)
        if request.cell.get("strategy") == "dtensor":
            _start_mesh()
        names = tuple(f"/device:GPU:{i}" for i in range(len(own)))
        if request.member is None:
            names = tuple(device.name for device in tf.config.list_logical_devices("GPU"))
        return Devices(names, physical=len(found), shared=False)

    def server_devices(self, request: "Request", member: "Membership") -> ServerDevices:
        """A worker's own GPUs, by their places among those that TensorFlow finds; a parameter server takes none."""
        if member.task != "worker":
            return super().server_devices(request, member)
        found, own = _share_of(request, member)
        places = ",".join(str(found.index(gpu)) for gpu in own)
        return ServerDevices(
            {"gpu_options": {"visible_device_list": places, "allow_growth": True}}, physical=len(found)
        )


def _start_mesh() -> None:
    """DTensor's own start, which must come before TensorFlow's: a logical processor beside each GPU, and NCCL for its
    collectives, which are a ring where neither this nor the user's own variable asks for it."""
    from tensorflow.experimental import dtensor

    os.environ.setdefault(MESH_USES_NCCL, "1")
    dtensor.initialize_accelerator_system("GPU")


def _share_of(request: "Request", member: "Membership | None") -> tuple[list[Any], list[Any]]:
    """(the host's GPUs, those of this process); Unsupported where the host has too few for all its processes."""
    import tensorflow as tf

    if reason := no_gpu_reason():
        raise Unsupported(reason)
    found = tf.config.list_physical_devices("GPU")
    first, count = (0 if member is None else member.first_device), request.cell.devices
    if first + count > len(found):
        others = f" besides the {first} of other processes on its host" if first else ""
        raise Unsupported(
            f"{request.cell.shape.replicas} replicas need {count} GPUs{others}, and TensorFlow finds {len(found)}"
        )
    return found, found[first : first + count]


DEVICE = Gpu()
