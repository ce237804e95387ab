"""What a run tells while it runs, how long it still takes, and both as plain lines.

A trial costs its set-up, a window in each round, and its exit, and each of them is timed as it happens, cell by
cell: cells differ tenfold. What is left is the sum over the trials that are left. A cell that has not run yet is
taken to cost what the first estimate says, times the factor by which that estimate was wrong about the cells that have.
`benchmarks/goals/eta.py` measures how far off it is.
"""

import contextlib
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Protocol, TextIO

from harness.plan.estimate import WINDOW_OVERHEAD, fixed_s
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.spec.cell import cell_names
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.visible import one_line, plural

FIRST_EXIT_S = 0.05
"""An exit, before one was seen."""


class Listener(Protocol):
    """What a run of any kind tells: its end. The rest is between the run and a listener of its own kind."""

    def finished(self) -> None:
        """The run is over, however it ended."""


class Costs:
    """Seconds that one part of a trial takes, by cell."""

    def __init__(self, first: Callable[[Cell], float]) -> None:
        """`first` is the estimate before anything was seen."""
        self._first = first
        self.seen: defaultdict[Cell, list[float]] = defaultdict(list)

    def of(self, cell: Cell) -> float:
        """The mean of what was seen of the cell, else the first estimate times how wrong it was about the others."""
        if cell in self.seen:
            return fmean(self.seen[cell])
        took = math.fsum(map(fmean, self.seen.values()))
        return self._first(cell) * (took / math.fsum(map(self._first, self.seen)) if self.seen else 1.0)


class Progress:
    """A listener, which knows the time left and says nothing until it is told how. What it counts are trials.

    Where nobody says which groups are ahead (`ab`, `validate`), the time left goes by their number.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.done = self.total = 0
        self.ahead = ""
        """The look that comes after the blocks that are planned, in words."""
        self.manifest: RunManifest | None = None
        self.trials: list[TrialRecord] = []
        """All of the run, those of earlier sittings too."""
        self._names: dict[str, str] = {}
        """What tells each cell from the others of the run."""
        self._clock = clock
        self._estimate_s = self._since = 0.0
        self._unknown = ""
        self._sweep = Sweep()
        self._set_up = Costs(fixed_s)
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

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """What a sweep sets out to do, and what of it was measured before it was resumed. Before `started`."""
        self.manifest, self.trials = manifest, list(earlier)
        self._sweep, self._names = manifest.sweep, cell_names(manifest.cells)
        for record in earlier:
            if record.measured and record.windows is not None:
                before = math.fsum(record.windows.seconds[: record.windows.measured_from])
                pilot = max(0.0, (record.phases.warmup_s or 0.0) - before)
                self._set_up.seen[record.cell].append(record.phases.fixed_s - (record.phases.exit_s or 0.0) + pilot)
                self._window.seen[record.cell] += record.windows.seconds

    def started(self, run_id: str, total: int, estimate_s: float, unknown: str = "") -> None:
        """The sweep begins; `total` trials are still to run. `unknown` is what the estimate has nothing of."""
        self.total, self._estimate_s, self._since, self.done = total, estimate_s, self._clock(), 0
        self._unknown = unknown

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """A trial of each of `cells` is set up next, in this order; `later` are the groups after it, as known now."""
        self._begin_group(cells, later)

    def block(self, number: int, blocks: int, trials: int) -> None:
        """A group of `trials` trials of block `number` (from 0) of `blocks` begins."""

    def look(self, number: int, looks: int, after: int, of: str = "") -> None:
        """The blocks up to look `number` (from 1) of at most `looks` run next; it is after `after` of them in all.

        `of` says which decision is looked at, where a run makes several.
        """
        self.ahead = ", ".join(filter(None, (of, f"look {number} of {looks} after {after}")))

    def phase(self, cell: Cell, phase: str) -> None:
        """A trial of `cell` enters a phase: `start` begins its set-up, and `exit` its end."""
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
        """Round `number` of `rounds` begins; each of `trials` trials takes one window."""
        now = self._clock()
        if number == 0:
            self._end_set_up(now)
        self._round_starts.append(now)

    def turn(self, cell: Cell, side: str | None = None) -> None:
        """A trial of `cell`, of that side of a comparison, is to take a window next.

        From the return to `window` nothing may use the processor.
        """

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """It took `seconds` for `steps` steps."""
        self._window.seen[cell].append(seconds)

    def ended(self, record: TrialRecord) -> None:
        """A trial ended and its record is on disk."""
        self.done += 1
        self.trials.append(record)
        now, cell = self._clock(), record.cell
        (self._without_window.discard if record.windows is not None else self._without_window.add)(cell)
        if cell in self._exits:
            self._exit.seen[cell].append(now - self._exits[cell])
        elif self._setting_up is not None and self._setting_up[0] == cell:
            self._end_set_up(now)

    def skipped(self, trials: int) -> None:
        """`trials` planned trials need not run (their cell turned out to be unsupported)."""
        self.total -= trials

    def more(self, trials: int) -> None:
        """`trials` beyond those planned so far will run (a second stage, or a trial that is repeated)."""
        self.total += trials

    def finished(self) -> None:
        """See Listener."""

    def name_of(self, cell: Cell, side: str | None = None) -> str:
        """A cell's name among those of the run, with its side: `A, mirrored ×2`; of a validation the arm's name."""
        name = self._names.get(cell.cell_id, cell.label)
        return name if side is None else f"{side.upper() if len(side) == 1 else side}, {name}"

    def left_s(self) -> float:
        """Expected seconds until the end."""
        if not self._cells:
            return self._by_count()
        return max(0.0, self._of_this_group() + sum(map(self._of_group, self._later)))

    @property
    def is_least(self) -> bool:
        """Whether that is a lower limit: no trial has shown yet what nobody knew before."""
        return bool(self._unknown) and not (self._set_up.seen or self.done)

    def left(self) -> str:
        """The same in words."""
        return f"{'more than' if self.is_least else 'about'} {duration(self.left_s())} left"

    def _by_count(self) -> float:
        """What is left of the first estimate; once a fifth of the trials is done, or it is used up, their measured
        pace. Where it is used up before one is done, all of it is still to come."""
        elapsed, left = self._clock() - self._since, self.total - self.done
        if left <= 0:
            return 0.0
        if self.done * 5 < self.total and elapsed < self._estimate_s:
            return self._estimate_s - elapsed
        return elapsed / self.done * left if self.done else self._estimate_s

    def _end_set_up(self, now: float) -> None:
        if self._setting_up is not None:
            cell, since = self._setting_up
            self._set_up.seen[cell].append(now - since)
            self._setting_up = None

    def _of_group(self, cells: Sequence[Cell]) -> float:
        fixed = sum(self._set_up.of(cell) + self._exit.of(cell) for cell in cells)
        return fixed + self._rounds * self._round_s(cells)

    def _of_this_group(self) -> float:
        left = sum(self._exit.of(cell) for cell in self._cells if cell not in self._exits)
        if self._exits:
            return left
        one = self._round_s(self._cells)
        if not self._round_starts:
            return left + self._of_set_ups() + self._rounds * one
        over = len(self._round_starts) - 1
        if over >= 2:  # what rounds take now, should the machine have become slower
            one = (self._round_starts[-1] - self._round_starts[0]) / over
        present = min(one, self._clock() - self._round_starts[-1])
        return left + (self._rounds - over) * one - present

    def _of_set_ups(self) -> float:
        left = sum(map(self._set_up.of, self._waiting))
        if self._setting_up is not None:
            cell, since = self._setting_up
            left += max(0.0, self._set_up.of(cell) - (self._clock() - since))
        return left

    @property
    def _rounds(self) -> int:
        return self._sweep.max_warmup + self._sweep.windows

    def _round_s(self, cells: Sequence[Cell]) -> float:
        return sum(self._window.of(cell) for cell in cells if cell not in self._without_window)


class Quiet(Progress):
    """Says nothing."""


class PlainLines(Progress):
    """One line a trial, for a pipe, a log or CI."""

    def __init__(self, out: TextIO | None = None) -> None:
        super().__init__()
        self._out = out or sys.stderr

    def started(self, run_id: str, total: int, estimate_s: float, unknown: str = "") -> None:
        """Name the run."""
        super().started(run_id, total, estimate_s, unknown)
        self._say(f"run {run_id}: {plural(total, 'trial')}, {in_words(estimate_s, unknown)}")

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Announce a group."""
        ahead = f" ({self.ahead})" if self.ahead else ""
        turns = plural(trials, "trial") + (" take turns" if trials > 1 else "")
        self._announce(f"block {number + 1} of {blocks}{ahead}: {turns}, {self.left()}")

    def ended(self, record: TrialRecord) -> None:
        """One line with the trial's figure or what went wrong."""
        super().ended(record)
        self._say(f"[{self.done}/{self.total}] {self.name_of(record.cell, record.side)}: {figure(record)}")

    def _announce(self, text: str) -> None:
        self._say(text)

    def _say(self, text: str) -> None:
        say_line(text, self._out)


def figure(record: TrialRecord) -> str:
    """A trial's throughput, or what went wrong."""
    if record.throughput:
        # an instrument's first updates are proved, and then it is not to be a whole step
        wanting = record.status == "unproved" and record.checks.gate != "instrument"
        unproved = f" (unproved: {record.reason})" if wanting else ""
        return f"{record.throughput:,.0f} {record.cell.work.quantity.unit}{unproved}"
    return f"{record.status}: {record.reason}"


def duration(seconds: float) -> str:
    """A duration as people say it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def in_words(estimate_s: float, unknown: str, condition: str = "") -> str:
    """An estimate before anything was seen; `unknown` is what it has nothing of."""
    besides = f", and what {unknown} takes, which is not known before" if unknown else ""
    return f"about {duration(estimate_s)}{condition}{besides}"


def say_line(text: str, out: TextIO) -> None:
    """Write one line, whatever is in the text.

    A reader that is gone (head) or a log on a full disk must not cost the measurement.
    """
    with contextlib.suppress(OSError, ValueError):
        out.write(one_line(text) + "\n")
        out.flush()
