"""Logical GPUs on one physical GPU: what a strategy costs, with a GPU's kernels."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.devices.base import DeviceKind, Devices, no_gpu_reason, set_threads
from harness.errors import Unsupported
from harness.spec.catalogue import DeviceTraits

if TYPE_CHECKING:
    from harness.protocol.messages import Request

DEFAULT_MEMORY_MB = 2048
"""A logical GPU needs a limit; `gpu_memory_mb` sets another."""


class VirtualGpu(DeviceKind):
    """Replicas share one card: overhead, not hardware scaling."""

    traits = DeviceTraits("virtual-gpu", "logical GPUs on the first physical GPU", virtual=True, live_trials=2)

    def available(self) -> str | None:
        """None where TensorFlow sees a GPU."""
        return no_gpu_reason()

    def set_up(self, request: "Request") -> Devices:
        """Split the first GPU into a logical device a replica, each with a memory limit."""
        import tensorflow as tf

        if reason := no_gpu_reason():
            raise Unsupported(reason)
        set_threads(request)
        first = tf.config.list_physical_devices("GPU")[0]
        tf.config.set_visible_devices([first], "GPU")
        limit = request.gpu_memory_mb or DEFAULT_MEMORY_MB
        tf.config.set_logical_device_configuration(
            first, [tf.config.LogicalDeviceConfiguration(memory_limit=limit)] * request.cell.shape.replicas
        )
        names = tuple(device.name for device in tf.config.list_logical_devices("GPU"))
        return Devices(names, physical=1, shared=request.cell.shape.replicas > 1)


DEVICE = VirtualGpu()
