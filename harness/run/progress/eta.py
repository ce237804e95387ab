"""How long a sweep still takes, from what each cell's trials have taken so far.

A trial costs its set-up, a window in each round, and its exit, and each of them is timed as it happens, cell by
cell: cells differ tenfold. What is left is the sum over the trials that are left. A cell that has not run yet is
taken to cost what the first estimate says, times the factor by which that estimate was wrong about the cells that have.
`benchmarks/goals/eta.py` measures how far off it is.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean

from harness.plan.estimate import FIXED_PER_REPLICA_S, FIXED_S, WINDOW_OVERHEAD
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.run.progress.base import Progress, duration, on_side
from harness.spec.cell import cell_names
from harness.spec.sweep import Sweep
from harness.spec.work import Cell

FIRST_EXIT_S = 0.05
"""An exit, before one was seen."""


class Costs:
    """Seconds that one part of a trial takes, by cell."""

    def __init__(self, first: Callable[[Cell], float]) -> None:
        """`first` is the estimate before anything was seen."""
        self._first = first
        self._seen: defaultdict[Cell, list[float]] = defaultdict(list)

    def add(self, cell: Cell, *seconds: float) -> None:
        """It took a trial of `cell` so long."""
        self._seen[cell] += seconds

    @property
    def seen(self) -> bool:
        """Whether any was."""
        return bool(self._seen)

    def of(self, cell: Cell) -> float:
        """The mean of what was seen of the cell, else the first estimate times how wrong it was about the others."""
        if cell in self._seen:
            return fmean(self._seen[cell])
        took = math.fsum(map(fmean, self._seen.values()))
        return self._first(cell) * (took / math.fsum(map(self._first, self._seen)) if self._seen else 1.0)


class Timed(Progress):
    """Knows the seconds left. Where nobody says which groups are ahead (`ab`, `validate`), it counts trials."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.done = self.total = 0
        self._names: dict[str, str] = {}
        """What tells each cell from the others of the run."""
        self.ahead = ""
        """The look that comes after the blocks that are planned, in words."""
        self._clock = clock
        self._estimate_s = self._since = 0.0
        self._unknown = ""
        self._sweep = Sweep()
        self._set_up = Costs(lambda cell: FIXED_S + FIXED_PER_REPLICA_S * cell.replicas_in_sync)
        self._window = Costs(lambda _: self._sweep.window * WINDOW_OVERHEAD)
        self._exit = Costs(lambda _: FIRST_EXIT_S)
        self._without_window: set[Cell] = set()
        """Cells whose latest trial took no window: they cost their set-up only."""
        self._begin_group((), ())

    def _begin_group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        self._waiting, self._cells, self._later = list(cells), list(cells), later
        self._setting_up: tuple[Cell, float] | None = None
        """The trial whose set-up is under way, and since when."""
        self._round_starts: list[float] = []
        """When each round began; once a trial leaves, also when the last one ended."""
        self._exits: dict[Cell, float] = {}

    def look(self, number: int, looks: int, after: int, of: str = "") -> None:
        """Name it."""
        self.ahead = ", ".join(filter(None, (of, f"look {number} of {looks} after {after}")))

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """Learn what trials took before."""
        self._sweep = manifest.sweep
        self._names = cell_names(manifest.cells)
        for record in earlier:
            if record.measured and record.windows is not None:
                before = math.fsum(record.windows.seconds[: record.windows.measured_from])
                pilot = max(0.0, (record.phases.warmup_s or 0.0) - before)
                self._set_up.add(record.cell, record.phases.fixed_s - (record.phases.exit_s or 0.0) + pilot)
                self._window.add(record.cell, *record.windows.seconds)

    def name_of(self, cell: Cell, side: str | None = None) -> str:
        """Its name among the cells of the run, with the side of a comparison that it is on."""
        return on_side(self._names.get(cell.cell_id, cell.label), side)

    def started(self, run_id: str, total: int, estimate_s: float, unknown: str = "") -> None:
        """Begin to count."""
        self.total, self._estimate_s, self._since, self.done = total, estimate_s, self._clock(), 0
        self._unknown = unknown

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """Learn what is left."""
        self._begin_group(cells, later)

    def phase(self, cell: Cell, phase: str) -> None:
        """`start` begins a trial's set-up, and `exit` its end."""
        now = self._clock()
        if phase == "start":
            self._end_set_up(now)
            self._setting_up = (cell, now)
            self._waiting = self._waiting[1:]
        elif phase == "exit":
            if not self._exits:
                self._round_starts.append(now)
            self._exits[cell] = now

    def round(self, number: int, rounds: int, trials: int) -> None:
        """Learn when a round begins."""
        now = self._clock()
        if number == 0:
            self._end_set_up(now)
        self._round_starts.append(now)

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """Learn what a window takes."""
        self._window.add(cell, seconds)

    def ended(self, record: TrialRecord) -> None:
        """One more is done."""
        self.done += 1
        now, cell = self._clock(), record.cell
        (self._without_window.discard if record.windows is not None else self._without_window.add)(cell)
        if cell in self._exits:
            self._exit.add(cell, now - self._exits[cell])
        elif self._setting_up is not None and self._setting_up[0] == cell:
            self._end_set_up(now)

    def skipped(self, trials: int) -> None:
        """Fewer are left."""
        self.total -= trials

    def more(self, trials: int) -> None:
        """More are left."""
        self.total += trials

    def left_s(self) -> float:
        """Expected seconds until the end."""
        if not self._cells:
            return self._by_count()
        return max(0.0, self._of_this_group() + sum(self._of_group(cells) for cells in self._later))

    @property
    def is_least(self) -> bool:
        """Whether that is a lower limit: no trial has shown yet what nobody knew before."""
        return bool(self._unknown) and not (self._set_up.seen or self.done)

    def left(self) -> str:
        """The same in words."""
        return f"{'more than' if self.is_least else 'about'} {duration(self.left_s())} left"

    def _by_count(self) -> float:
        """The first estimate; once a fifth of the trials is done, their measured pace."""
        elapsed = self._clock() - self._since
        if self.done == 0 or self.done * 5 < self.total:
            return max(0.0, self._estimate_s - elapsed)
        return elapsed / self.done * max(0, self.total - self.done)

    def _end_set_up(self, now: float) -> None:
        if self._setting_up is not None:
            cell, since = self._setting_up
            self._set_up.add(cell, now - since)
            self._setting_up = None

    def _of_group(self, cells: Sequence[Cell]) -> float:
        fixed = sum(self._set_up.of(cell) + self._exit.of(cell) for cell in cells)
        return fixed + self._rounds() * self._round_s(cells)

    def _of_this_group(self) -> float:
        left = sum(self._exit.of(cell) for cell in self._cells if cell not in self._exits)
        if self._exits:
            return left
        one = self._round_s(self._cells)
        if not self._round_starts:
            return left + self._of_set_ups() + self._rounds() * one
        over = len(self._round_starts) - 1
        if over >= 2:  # what rounds take now, should the machine have become slower
            one = (self._round_starts[-1] - self._round_starts[0]) / over
        present = min(one, self._clock() - self._round_starts[-1])
        return left + (self._rounds() - over) * one - present

    def _of_set_ups(self) -> float:
        left = sum(map(self._set_up.of, self._waiting))
        if self._setting_up is not None:
            cell, since = self._setting_up
            left += max(0.0, self._set_up.of(cell) - (self._clock() - since))
        return left

    def _rounds(self) -> int:
        return self._sweep.max_warmup + self._sweep.windows

    def _round_s(self, cells: Sequence[Cell]) -> float:
        return sum(self._window.of(cell) for cell in cells if cell not in self._without_window)
