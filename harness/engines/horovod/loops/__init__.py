"""The documented ways to train with Horovod. One file a way, with one `LOOP`."""

from collections.abc import Mapping

from harness.engines.horovod.loops.base import Way as Way
from harness.engines.horovod.loops.base import WayKind as WayKind
from harness.registry import registered


def loops() -> Mapping[str, WayKind]:
    """The registered loops by name, without importing TensorFlow."""
    return registered(__name__, "LOOP")
