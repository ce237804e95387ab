"""How many steps a window has: such that windows that are compared last equally long, and as long as was asked for.

Each window costs something beside its steps: the synchronisation at its end, and a processor that others used
meanwhile (2.0 ± 1.0 ms on two cores). In a window of half the length that weighs twice as much: windows of 43 and of
98 ms differ by 2.6 % for no other reason. Two sides of a comparison, which are to tell less than that apart, even have
one number of steps, where a step is the same work on both; a pilot that took one step a window in one trial and two in
the next made the second 4 % faster.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.record.trial import TrialRecord
from harness.run.turns.live import LiveTrial
from harness.spec.grouping import turn_takers

ALIKE = 2
"""Cells share a window time, and the two sides of a comparison a number of steps, where what they would choose by
themselves differs by no more than this factor: one slow cell does not make the windows of all others long."""
COST_S = 0.002
"""What a window costs beside its steps."""
ALIKE_WITHIN = 0.007
"""Windows count as equally long while that cost, as a share of them, differs by no more: less than any δ. A step of
50 ms makes windows of 100 or of 150 ms, and longer ones for all cells would take more time than they are worth."""
LONGEST = 1.3
"""The shared time is at most so many times what is needed, for the sake of windows of whole steps."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Pilot:
    """What the pilots of a cell's trials found: seconds of a step, and that a window is to last at least."""

    step_s: float
    window_s: float
    a_call: int
    """Steps of a call, of which a window has whole ones."""

    def steps(self, seconds: float) -> int:
        """The fewest steps that last so long, and as long as this cell needs."""
        least = max(1, math.ceil(max(seconds, self.window_s) / self.step_s * (1 - _ROUNDING)))
        return math.ceil(least / self.a_call) * self.a_call

    def lasts(self, seconds: float) -> float:
        """How long a window of so many steps lasts."""
        return self.steps(seconds) * self.step_s


class StepCounts:
    """Steps a window, by program: the trials before them decide for those that come, in a resumed run too.

    A program is a cell's, or that of one of its instruments: a step that does nothing has a hundred where the whole one
    has one.
    """

    def __init__(self, earlier: Iterable[TrialRecord] = ()) -> None:
        self._steps: dict[str, int] = {}
        self._pilots: dict[str, _Pilot] = {}
        self._seconds: dict[object, float] = {}
        """By what cells must share to be compared."""
        lasted: defaultdict[object, list[float]] = defaultdict(list)
        for trial in earlier:
            if trial.windows is not None and trial.windows.seconds:
                side = trial.side if trial.checks.gate == "instrument" else None
                self._steps[_program(trial.cell_id, side)] = trial.windows.steps_per_window
                lasted[turn_takers(trial.cell)].append(statistics.median(trial.windows.seconds))
        for kind, seconds in lasted.items():
            self._seconds[kind] = statistics.median(s for s in seconds if s <= ALIKE * min(seconds))

    def agree(self, trials: Sequence[LiveTrial]) -> None:
        """Set the steps of live trials that wait for their first turn."""
        found = _pilots(trials)
        settled = {program: self._steps[program] for program in found if program in self._steps}
        new = {program: pilot for program, pilot in found.items() if program not in settled}
        if new:
            kind = turn_takers(trials[0].cell)
            least = min(pilot.window_s for pilot in new.values())
            seconds = self._seconds.get(kind)
            if seconds is None or seconds > ALIKE * least:  # slow cells that ran first have no say
                seconds = self._seconds[kind] = _shared(list(new.values()))
            fresh = {program: pilot.steps(seconds) for program, pilot in new.items()}
            of_all = [*settled.values(), *fresh.values()]
            same_work = len({trial.cell.work.amount for trial in trials}) == 1
            if same_work and all(trial.side is not None for trial in trials) and max(of_all) <= ALIKE * min(of_all):
                # a side that is set up for the first time in a later block joins what holds since the first
                whole = math.lcm(*(pilot.a_call for pilot in found.values()))
                fresh = dict.fromkeys(fresh, math.ceil(max(settled.values() or of_all) / whole) * whole)
            self._steps |= fresh
        self._pilots |= found
        for trial in trials:
            trial.steps = self._steps.get(_program_of(trial), trial.steps)

    def choose_again(self, trials: Iterable[TrialRecord], window_s: float) -> None:
        """Choose from what the windows of `trials` lasted, which `window_s` was asked for, in place of their pilots.

        A pilot is of one trial in its first seconds; windows took turns, so what slowed the machine slowed them all.
        Seen: cells whose windows were to last 100 ms had windows of 71 and of 150 ms.
        """
        kinds: defaultdict[object, dict[str, _Pilot]] = defaultdict(dict)
        for trial in trials:
            pilot, windows = self._pilots.get(trial.cell_id), trial.windows
            if trial.measured and windows is not None and pilot is not None:
                step_s = statistics.median(windows.seconds[windows.measured_from :]) / windows.steps_per_window
                # a window longer than was asked for is of steps, which are as long as they are, or of synchronisations
                needed = min(pilot.window_s, pilot.window_s * step_s / pilot.step_s)
                lasted = _Pilot(step_s, max(window_s, step_s, needed), pilot.a_call)
                kinds[turn_takers(trial.cell)][trial.cell_id] = lasted
        for kind, cells in kinds.items():
            seconds = self._seconds[kind] = _shared(list(cells.values()))
            self._steps |= {program: cell.steps(seconds) for program, cell in cells.items()}


def _program(cell_id: str, instrument: str | None) -> str:
    return f"{cell_id}/{instrument}" if instrument else cell_id


def _program_of(trial: LiveTrial) -> str:
    return _program(trial.cell.cell_id, trial.side if trial.request.instrument else None)


def _pilots(trials: Sequence[LiveTrial]) -> dict[str, _Pilot]:
    """By program. Of several trials of one the fastest counts, since a pilot is only ever delayed."""
    found: dict[str, _Pilot] = {}
    for trial in trials:
        if trial.pilot is not None and trial.pilot.step_seconds and trial.pilot.window_seconds:
            a_call = int(trial.cell.get("steps_per_execution") or 1)
            pilot = _Pilot(trial.pilot.step_seconds, trial.pilot.window_seconds, a_call)
            other = found.get(_program_of(trial), pilot)
            least = min(pilot.step_s, other.step_s), min(pilot.window_s, other.window_s)
            found[_program_of(trial)] = _Pilot(*least, a_call)
    return found


def _shared(pilots: Sequence[_Pilot]) -> float:
    """Seconds from which windows of whole steps last about equally long: the least such, else the least unequal.

    Cells that need more than `ALIKE` times what the others do have no say: their windows are as long as they need.
    """
    least = min(pilot.window_s for pilot in pilots)
    alike = [pilot for pilot in pilots if pilot.window_s <= ALIKE * least]
    needed = max(pilot.window_s for pilot in alike)

    def unequal(seconds: float) -> float:
        lasting = [pilot.lasts(seconds) for pilot in alike]
        return max(ALIKE_WITHIN, COST_S / min(lasting) - COST_S / max(lasting))

    return min((needed * (1 + (LONGEST - 1) * part / 20) for part in range(21)), key=unequal)
