"""Trials of several processes, started and measured."""

from typing import Any

from harness.protocol.messages import Request
from harness.record.trial import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended, LiveTrial, Slot
from harness.spec import Cell
from tests.record.examples import cell


def live(zygote: Zygote, of: Cell, timeout_s: float = 60.0) -> LiveTrial:
    """A trial of `of` that has not started."""
    request = Request(cell=of, seed=1, data_dir="", window_s=0.02, intra_op_threads=1, inter_op_threads=4)
    return LiveTrial(of, Slot("r", 0, "g", 0, 1, "none"), zygote, request, timeout_s, Interrupts())


def take_turns(trial: LiveTrial, windows: int) -> None:
    """A window after the other."""
    for number in range(windows):
        trial.take_turn(number)


def measured(zygote: Zygote, windows: int = 2, **keys: Any) -> TrialRecord:
    """The record of a short trial."""
    trial = live(zygote, cell(**keys))
    try:
        trial.start()
        trial.set_up()
        trial.measure_from(0)
        take_turns(trial, windows)
        trial.finish()
    except Ended:
        pass
    return trial.record()
