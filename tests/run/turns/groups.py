"""A group of trials that take turns."""

from collections.abc import Sequence
from pathlib import Path

from harness.record import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.progress import Quiet
from harness.run.request import request_for
from harness.run.turns.group import TurnGroup, TurnRules
from harness.run.turns.live import LiveTrial, Slot
from harness.spec import Cell, Sweep
from tests.run.fakes import FakeZygote, Plays


class Group:
    """A group of fake trials of different cells, `together` of which are set up at once."""

    def __init__(self, folder: Path, plays: Plays, cells: Sequence[Cell], together: int, timeout_s: float = 5.0):
        self.zygote = FakeZygote(folder, plays)
        self.kept: list[TrialRecord] = []
        self.interrupts = Interrupts()
        sweep = Sweep(window=0.01)
        trials = [
            LiveTrial(
                one,
                Slot("run", 0, "g", order, 1, "turns"),
                self.zygote,  # type: ignore[arg-type]
                request_for(one, sweep, folder),
                timeout_s,
                self.interrupts,
            )
            for order, one in enumerate(cells)
        ]
        self.turns = TurnGroup(trials, TurnRules(5, 0, 1, together), self.kept.append, Quiet())

    def run(self) -> list[LiveTrial]:
        with self.interrupts:
            return self.turns.run()

    def statuses(self) -> dict[str, str]:
        return {record.cell_id: record.status for record in self.kept}

    def at(self, who: Cell, what: str) -> int:
        return self.zygote.diary.index((who.cell_id, what))
