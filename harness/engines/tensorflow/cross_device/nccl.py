"""NcclAllReduce: NVIDIA's collective library, GPUs only."""

from typing import Any

from harness.engines.tensorflow.cross_device.base import CrossDeviceOp
from harness.spec.catalogue import CrossDeviceOpTraits


def _build(num_packs: int | None) -> Any:
    import tensorflow as tf

    return tf.distribute.NcclAllReduce(1 if num_packs is None else num_packs)


OP = CrossDeviceOp(
    CrossDeviceOpTraits("nccl", "tf.distribute.NcclAllReduce", packing="num_packs"),
    _build,
    promises=("NcclAllReduce", "CollectiveReduceV2[nccl]", "CollectiveReduceV3[nccl]"),
)
