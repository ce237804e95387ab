"""Training loops, one file each: how the steps of a window are driven."""

from collections.abc import Mapping
from typing import cast

from harness.engines.tensorflow.loops._coordinator import CoordinatorLoop
from harness.engines.tensorflow.loops._instrument import InstrumentLoop
from harness.engines.tensorflow.loops._mesh import MeshLoop
from harness.engines.tensorflow.loops.base import Loop, LoopKind
from harness.engines.tensorflow.loops.custom import CustomLoop
from harness.registry import registered


def loops() -> Mapping[str, LoopKind]:
    """Every registered loop by name."""
    return cast(Mapping[str, LoopKind], registered(__name__, "LOOP"))


__all__ = ["CoordinatorLoop", "CustomLoop", "InstrumentLoop", "Loop", "LoopKind", "MeshLoop", "loops"]
