"""HierarchicalCopyAllReduce: two groups of devices, copies along a fixed tree."""

from typing import Any

from harness.engines.tensorflow.cross_device.base import CrossDeviceOp
from harness.spec.catalogue import CrossDeviceOpTraits


def _build(num_packs: int | None) -> Any:
    import tensorflow as tf

    return tf.distribute.HierarchicalCopyAllReduce(1 if num_packs is None else num_packs)


OP = CrossDeviceOp(
    CrossDeviceOpTraits(
        "hierarchical_copy", "tf.distribute.HierarchicalCopyAllReduce", packing="num_packs", strategies=("mirrored",)
    ),
    _build,
)
