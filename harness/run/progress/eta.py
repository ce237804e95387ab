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

from harness.analysis.estimates.steady import GROUP
from harness.plan.estimate import FIXED_PER_REPLICA_S, FIXED_S, WARMUP_SHARE, WINDOW_OVERHEAD
from harness.record.trial import TrialRecord
from harness.spec.cell import Cell
from harness.spec.sweep import Sweep

Known = defaultdict[str, list[float]]
_SHOWN_EXIT_S = 0.05
"""An exit, before one was seen."""


class Eta:
    """Seconds left. Where nobody says which groups are ahead (`ab`, `validate`), it counts trials."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.done = 0
        self.total = 0
        self._estimate_s = 0.0
        self._since = 0.0
        self._sweep = Sweep()
        self._set_up: Known = defaultdict(list)
        self._window: Known = defaultdict(list)
        self._exit: Known = defaultdict(list)
        self._rounds_of_groups: list[int] = []
        self._cells: dict[str, Cell] = {}
        self._fails: set[str] = set()
        """Cells whose latest trial took no window: they cost their set-up only."""
        self._forget_group()

    def _forget_group(self) -> None:
        self._group: list[Cell] = []
        self._later: list[list[Cell]] = []
        self._begun: list[tuple[Cell, float]] = []
        """Trials of the group whose set-up has begun, and when."""
        self._round_starts: list[float] = []
        self._most = 0
        self._first_most = 0
        self._exits: list[tuple[Cell, float]] = []
        self._ready = 0
        """Of those in `_begun`, whose set-up is over."""

    def plan(self, sweep: Sweep, earlier: Sequence[TrialRecord]) -> None:
        """The sweep's settings, and the trials that were measured before it was resumed."""
        self._sweep = sweep
        for record in earlier:
            if record.status == "ok" and record.windows is not None:
                before = math.fsum(record.windows.seconds[: record.windows.measured_from])
                pilot = max(0.0, (record.phases.warmup_s or 0.0) - before)
                fixed = record.phases.fixed_s - (record.phases.exit_s or 0.0)
                self._cells[record.cell_id] = record.cell
                self._set_up[record.cell_id].append(fixed + pilot)
                self._window[record.cell_id] += record.windows.seconds
                self._rounds_of_groups.append(len(record.windows.seconds))

    def start(self, total: int, estimate_s: float) -> None:
        """Begin with `total` trials and an estimate for all of them."""
        self.total, self._estimate_s, self._since, self.done = total, estimate_s, self._clock(), 0

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """A trial of each of `cells` is set up next; `later` are the groups after it."""
        self._close_group()
        self._forget_group()
        self._group, self._later = list(cells), [list(group) for group in later]

    def phase(self, cell: Cell, phase: str) -> None:
        """A trial of `cell` enters a phase: `start` begins its set-up, `exit` its end."""
        now = self._clock()
        if phase == "start":
            self._end_set_up(now)
            self._cells[cell.cell_id] = cell
            self._begun.append((cell, now))
        elif phase == "exit":
            if not self._exits:
                self._round_starts.append(now)  # where the last round ended
            self._exits.append((cell, now))

    def round(self, number: int, most: int) -> None:
        """Round `number` of at most `most` begins."""
        now = self._clock()
        if number == 0:
            self._end_set_up(now)
            self._first_most = most
        self._most = most
        self._round_starts.append(now)

    def window(self, cell: Cell, seconds: float) -> None:
        """A window of `cell` took so long."""
        self._window[cell.cell_id].append(seconds)

    def ended(self, record: TrialRecord) -> None:
        """A trial ended."""
        self.done += 1
        now = self._clock()
        (self._fails.discard if record.windows is not None else self._fails.add)(record.cell_id)
        if self._exits and self._exits[-1][0].cell_id == record.cell_id:
            self._exit[record.cell_id].append(now - self._exits[-1][1])
        elif self._begun and self._begun[-1][0].cell_id == record.cell_id and not self._round_starts:
            self._end_set_up(now)

    def left_s(self) -> float:
        """Expected seconds until the end."""
        if not self._group:
            return self._by_count()
        expected = self._of_this_group() + sum(self._of_group(group) for group in self._later)
        return max(0.0, expected)

    def _by_count(self) -> float:
        """The first estimate; once a fifth of the trials is done, their measured pace."""
        elapsed = self._clock() - self._since
        if self.done == 0 or self.done * 5 < self.total:
            return max(0.0, self._estimate_s - elapsed)
        return elapsed / self.done * max(0, self.total - self.done)

    def _end_set_up(self, now: float) -> None:
        if self._begun and not self._round_starts and len(self._begun) > self._ready:
            cell, since = self._begun[-1]
            self._set_up[cell.cell_id].append(now - since)
            self._ready = len(self._begun)

    def _close_group(self) -> None:
        """Keep how many rounds the group took; the last entry is where they ended."""
        rounds = len(self._round_starts) - bool(self._exits)
        if rounds > 0:
            self._rounds_of_groups.append(rounds)

    def _of_this_group(self) -> float:
        now = self._clock()
        waiting = self._group[len(self._begun) :] if not self._round_starts else []
        left = sum(self._set_up_s(cell) for cell in waiting)
        if len(self._begun) > self._ready:
            cell, since = self._begun[-1]
            left += max(0.0, self._set_up_s(cell) - (now - since))
        gone = {cell.cell_id for cell, _ in self._exits}
        left += sum(self._exit_s(cell) for cell in self._group if cell.cell_id not in gone)
        if self._exits:
            return left
        one = self._round_s(self._group)
        if not self._round_starts:
            return left + self._rounds() * one
        whole = len(self._round_starts) - 1  # rounds that are over; the last entry is when the present one began
        if whole >= 2:
            one = (self._round_starts[-1] - self._round_starts[0]) / whole
        present = min(one, now - self._round_starts[-1])
        return left + (self._expected_rounds(whole) - whole) * one - present

    def _expected_rounds(self, whole: int) -> float:
        """Rounds of this group, of which `whole` are over: exact once its steady state is known.

        Where it begins is known two groups of windows later, so that what is not known yet is not before then.
        """
        if self._most < self._first_most:
            return self._most
        least = max(whole + 1, self._sweep.windows + max(0, whole + 1 - 2 * GROUP))
        usual = [rounds for rounds in self._rounds_of_groups if rounds >= least]
        expected = sum(usual) / len(usual) if usual else max(self._rounds(), least)
        return min(self._most, expected)

    def _of_group(self, cells: Sequence[Cell]) -> float:
        fixed = sum(self._set_up_s(cell) + self._exit_s(cell) for cell in cells)
        return fixed + self._rounds() * self._round_s(cells)

    def _rounds(self) -> float:
        if self._rounds_of_groups:
            return sum(self._rounds_of_groups) / len(self._rounds_of_groups)
        return self._sweep.windows + WARMUP_SHARE * self._sweep.max_warmup

    def _round_s(self, cells: Sequence[Cell]) -> float:
        running = (cell for cell in cells if cell.cell_id not in self._fails)
        return sum(self._known_or(self._window, cell, self._first_window_s) for cell in running)

    def _set_up_s(self, cell: Cell) -> float:
        return self._known_or(self._set_up, cell, _first_set_up_s)

    def _exit_s(self, cell: Cell) -> float:
        return self._known_or(self._exit, cell, lambda _: _SHOWN_EXIT_S)

    def _first_window_s(self, _: Cell) -> float:
        return self._sweep.window * WINDOW_OVERHEAD

    def _known_or(self, known: Known, cell: Cell, first: Callable[[Cell], float]) -> float:
        """The mean of what is known of the cell, else the first estimate times how wrong it was about the others."""
        if values := known.get(cell.cell_id):
            return math.fsum(values) / len(values)
        seen = [(math.fsum(values) / len(values), first(self._cells[other])) for other, values in known.items()]
        if not seen:
            return first(cell)
        return first(cell) * sum(took for took, _ in seen) / sum(said for _, said in seen)


def _first_set_up_s(cell: Cell) -> float:
    return FIXED_S + FIXED_PER_REPLICA_S * cell.replicas_in_sync
