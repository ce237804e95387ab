"""Training loops, one file each: how the steps of a window are driven."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from harness.engines.tensorflow.loops._coordinator import CoordinatorLoop
from harness.engines.tensorflow.loops._instrument import InstrumentLoop
from harness.engines.tensorflow.loops._mesh import MeshLoop
from harness.engines.tensorflow.loops._server_instrument import ServerInstrumentLoop
from harness.engines.tensorflow.loops.base import Loop, LoopKind
from harness.engines.tensorflow.loops.custom import CustomLoop
from harness.registry import registered

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


def instrument_of(training: "Training", name: str) -> Loop:
    """The loop that times an instrument of the training's step. Raises Unsupported where there is none."""
    return (ServerInstrumentLoop if training.cell.asynchronous else InstrumentLoop)(training, name)


def loops() -> Mapping[str, LoopKind]:
    """Every registered loop by name."""
    return cast(Mapping[str, LoopKind], registered(__name__, "LOOP"))


__all__ = ["CoordinatorLoop", "CustomLoop", "Loop", "LoopKind", "MeshLoop", "instrument_of", "loops"]
