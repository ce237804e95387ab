"""RING: TensorFlow's collective all-reduce over gRPC, worker to worker."""

from typing import Any

from harness.engines.tensorflow.cross_device.base import CrossDeviceOp
from harness.spec.catalogue import CrossDeviceOpTraits


def _build(_: int | None) -> Any:
    """None: MultiWorkerMirroredStrategy takes the implementation's name, not an object."""
    return None


OP = CrossDeviceOp(
    CrossDeviceOpTraits("ring", "CommunicationImplementation.RING", strategies=("multi_worker_mirrored",)),
    _build,
    promises=("CollectiveReduceV2[ring]", "CollectiveReduceV3[ring]", "CollectiveReduce[ring]"),
)
