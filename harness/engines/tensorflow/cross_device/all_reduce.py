"""TensorFlow's cross-device ops."""

from typing import Any

from harness.engines.tensorflow.cross_device.base import CrossDeviceOp
from harness.spec.catalogue import CrossDeviceOpTraits


def _default(_: int | None) -> Any:
    """None: the strategy chooses; MultiWorkerMirroredStrategy takes a collective's name, not an object."""
    return None


def _hierarchical_copy(num_packs: int | None) -> Any:
    import tensorflow as tf

    return tf.distribute.HierarchicalCopyAllReduce(1 if num_packs is None else num_packs)


def _nccl(num_packs: int | None) -> Any:
    import tensorflow as tf

    return tf.distribute.NcclAllReduce(1 if num_packs is None else num_packs)


def _reduction_to_one_device(_: int | None) -> Any:
    import tensorflow as tf

    return tf.distribute.ReductionToOneDevice()


_AUTO = CrossDeviceOp(
    CrossDeviceOpTraits("auto", "TensorFlow's own default", packing="bytes_per_pack"),
    _default,
)
"""CollectiveAllReduce: under MirroredStrategy NCCL on physical GPUs, between workers and on processors a ring."""

_HIERARCHICAL_COPY = CrossDeviceOp(
    CrossDeviceOpTraits(
        "hierarchical_copy", "tf.distribute.HierarchicalCopyAllReduce", packing="num_packs", strategies=("mirrored",)
    ),
    _hierarchical_copy,
)
"""Two groups of devices, copies along a fixed tree."""

_NCCL = CrossDeviceOp(
    CrossDeviceOpTraits("nccl", "tf.distribute.NcclAllReduce", packing="num_packs", past_networks=True),
    _nccl,
    promises=("NcclAllReduce", "CollectiveReduceV2[nccl]", "CollectiveReduceV3[nccl]"),
)
"""NVIDIA's collective library, GPUs only. It knows one host by the kernel's boot id, which namespaces share, and takes
its memory there."""

_REDUCTION_TO_ONE_DEVICE = CrossDeviceOp(
    CrossDeviceOpTraits("reduction_to_one_device", "tf.distribute.ReductionToOneDevice", strategies=("mirrored",)),
    _reduction_to_one_device,
    promises=("AddN",),
)
"""Copy every gradient to one device, add, copy back."""

_RING = CrossDeviceOp(
    CrossDeviceOpTraits("ring", "CommunicationImplementation.RING", strategies=("multi_worker_mirrored",)),
    _default,
    promises=("CollectiveReduceV2[ring]", "CollectiveReduceV3[ring]", "CollectiveReduce[ring]"),
)
"""TensorFlow's collective all-reduce over gRPC, worker to worker."""

OPS = (_AUTO, _HIERARCHICAL_COPY, _NCCL, _REDUCTION_TO_ONE_DEVICE, _RING)
