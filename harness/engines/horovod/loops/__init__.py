"""The documented ways to train with Horovod. One file a way, with one `LOOP`."""

from collections.abc import Mapping

from harness.engines.horovod.loops.base import HorovodLoop as HorovodLoop
from harness.engines.horovod.loops.base import HorovodLoopKind as HorovodLoopKind
from harness.registry import registered


def loops() -> Mapping[str, HorovodLoopKind]:
    """The registered loops by name, without importing TensorFlow."""
    return registered(__name__, "LOOP")
