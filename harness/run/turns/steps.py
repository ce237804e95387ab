"""How many steps a window has: one number for all that is compared as equal, for as long as a run lasts.

Each window costs something beside its steps: the synchronisation at its end, and a processor that others
used meanwhile. A pilot that took one step a window in one trial and two in the next would make the second
some per cent faster (seen: 4 % at 20 ms a window), and where the trial that is set up last has the quieter
pilot, always the same side.
"""

from collections.abc import Iterable, Sequence

from harness.record.trial import TrialRecord
from harness.run.turns.live import LiveTrial

ALIKE = 2
"""Cells of a comparison whose pilots differ by no more than this factor share one number."""


class StepCounts:
    """Steps a window, by cell: the trials that run first decide for those after them.

    The two cells of a comparison share the larger number when their pilots are alike, so that what a
    window costs beside its steps weighs the same on both; where they are not, windows of about equal time
    do that.
    """

    def __init__(self, earlier: Iterable[TrialRecord] = ()) -> None:
        self._steps: dict[str, int] = {}
        for trial in earlier:
            if trial.windows is not None:
                self._steps.setdefault(trial.cell_id, trial.windows.steps_per_window)

    def agree(self, trials: Sequence[LiveTrial]) -> None:
        """Set the steps of live trials that wait for their first turn."""
        found: dict[str, int] = {}
        for trial in trials:
            if trial.steps is not None:
                found[trial.cell.cell_id] = max(trial.steps, found.get(trial.cell.cell_id, 1))
        settled = {cell_id: self._steps[cell_id] for cell_id in found if cell_id in self._steps}
        fresh = {cell_id: steps for cell_id, steps in found.items() if cell_id not in settled}
        of_all = [*settled.values(), *fresh.values()]
        if fresh and all(trial.side is not None for trial in trials) and max(of_all) <= ALIKE * min(of_all):
            # a side that is set up for the first time in a later block joins what holds since the first
            fresh = dict.fromkeys(fresh, max(settled.values() or of_all))
        self._steps |= fresh
        for trial in trials:
            trial.steps = self._steps.get(trial.cell.cell_id, trial.steps)
