"""TensorFlow's own choice: CollectiveAllReduce, NCCL on GPUs, RING on CPUs."""

from typing import Any

from harness.engines.tensorflow.cross_device.base import CrossDeviceOp
from harness.spec.catalogue import CrossDeviceOpTraits


def _build(_: int | None) -> Any:
    return None


OP = CrossDeviceOp(CrossDeviceOpTraits("auto", "TensorFlow's own default", packing="bytes_per_pack"), _build)
