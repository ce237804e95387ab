"""Physical GPUs, one a replica."""

from typing import TYPE_CHECKING

from harness.spec.catalogue import DeviceTraits
from harness.trial.devices.base import DeviceKind, Devices, Unsupported, no_gpu_reason, set_threads

if TYPE_CHECKING:
    from harness.trial.protocol import Request


class Gpu(DeviceKind):
    """Memory growth is on: trials that are alive together must not each take the whole card."""

    traits = DeviceTraits("gpu", "physical GPUs, one a replica", live_trials=4)

    def available(self) -> str | None:
        """None where TensorFlow sees a GPU."""
        return no_gpu_reason()

    def set_up(self, request: "Request") -> Devices:
        """Take the first n GPUs that TensorFlow sees (CUDA_VISIBLE_DEVICES is honoured)."""
        import tensorflow as tf

        if reason := no_gpu_reason():
            raise Unsupported(reason)
        set_threads(request)
        found = tf.config.list_physical_devices("GPU")
        count = request.cell.devices
        if count > len(found):
            raise Unsupported(f"{request.cell.replicas} replicas need {count} GPUs, and TensorFlow finds {len(found)}")
        tf.config.set_visible_devices(found[:count], "GPU")
        for gpu in found[:count]:
            tf.config.experimental.set_memory_growth(gpu, True)
        names = tuple(device.name for device in tf.config.list_logical_devices("GPU"))
        return Devices(names, physical=len(found), shared=False)


DEVICE = Gpu()
