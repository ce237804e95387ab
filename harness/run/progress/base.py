"""What a sweep tells while it runs; a terminal, a pipe and a test each listen in their own way."""

import contextlib
import sys
from collections.abc import Sequence
from typing import Protocol, TextIO

from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.run.progress.eta import Eta
from harness.spec.cell import Cell


class Progress(Protocol):
    """A listener. `done` and `total` count trials."""

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """What a sweep sets out to do, and what of it was measured before it was resumed. Before `started`."""

    def started(self, run_id: str, total: int, estimate_s: float) -> None:
        """The sweep begins; `total` trials are still to run."""

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """A trial of each of `cells` is set up next, in this order; `later` are the groups after it, as known now."""

    def block(self, number: int, blocks: int, trials: int) -> None:
        """A group of `trials` trials of block `number` (from 0) of `blocks` begins."""

    def phase(self, cell: Cell, phase: str) -> None:
        """A trial of `cell` enters a phase."""

    def round(self, number: int, most: int, trials: int) -> None:
        """Round `number` of at most `most` begins; each of `trials` trials takes one window.

        `most` falls to the exact number of rounds once the steady state is reached.
        """

    def turn(self, cell: Cell) -> None:
        """A trial of `cell` is to take a window next. From the return to `window` nothing may use the processor."""

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """It took `seconds` for `steps` steps."""

    def ended(self, record: TrialRecord) -> None:
        """A trial ended and its record is on disk."""

    def skipped(self, trials: int) -> None:
        """`trials` planned trials need not run (their cell turned out to be unsupported)."""

    def more(self, trials: int) -> None:
        """`trials` beyond those planned so far will run (a second stage, or a trial that is repeated)."""

    def finished(self) -> None:
        """The sweep is over, however it ended."""


class Quiet:
    """Says nothing."""

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None: ...
    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None: ...
    def turn(self, cell: Cell) -> None: ...
    def window(self, cell: Cell, seconds: float, steps: int) -> None: ...
    def started(self, run_id: str, total: int, estimate_s: float) -> None: ...
    def block(self, number: int, blocks: int, trials: int) -> None: ...
    def phase(self, cell: Cell, phase: str) -> None: ...
    def round(self, number: int, most: int, trials: int) -> None: ...
    def ended(self, record: TrialRecord) -> None: ...
    def skipped(self, trials: int) -> None: ...
    def more(self, trials: int) -> None: ...
    def finished(self) -> None: ...


def duration(seconds: float) -> str:
    """A duration as people say it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Timed(Quiet):
    """Says nothing either, and keeps count of the time left."""

    def __init__(self) -> None:
        self._eta = Eta()

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """Learn what trials took before."""
        self._eta.plan(manifest.sweep, earlier)

    def started(self, run_id: str, total: int, estimate_s: float) -> None:
        """Begin to count."""
        self._eta.start(total, estimate_s)

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """Learn what is left."""
        self._eta.group(cells, later)

    def phase(self, cell: Cell, phase: str) -> None:
        """Learn what each phase takes."""
        self._eta.phase(cell, phase)

    def round(self, number: int, most: int, trials: int) -> None:
        """Learn how many rounds there are."""
        self._eta.round(number, most)

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """Learn what a window takes."""
        self._eta.window(cell, seconds)

    def ended(self, record: TrialRecord) -> None:
        """One more is done."""
        self._eta.ended(record)

    def skipped(self, trials: int) -> None:
        """Fewer are left."""
        self._eta.total -= trials

    def more(self, trials: int) -> None:
        """More are left."""
        self._eta.total += trials

    @property
    def _left(self) -> str:
        """`3 min 20 s`."""
        return duration(self._eta.left_s())


class PlainLines(Timed):
    """One line a trial, for a pipe, a log or CI."""

    def __init__(self, out: TextIO | None = None) -> None:
        super().__init__()
        self._out = out or sys.stderr

    def started(self, run_id: str, total: int, estimate_s: float) -> None:
        """Name the run."""
        super().started(run_id, total, estimate_s)
        self._say(f"run {run_id}: {total} trials, about {duration(estimate_s)}")

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Announce a group."""
        self._say(f"block {number + 1} of {blocks}: {trials} trials take turns, about {self._left} left")

    def ended(self, record: TrialRecord) -> None:
        """One line with the trial's figure or what went wrong."""
        super().ended(record)
        self._say(f"[{self._eta.done}/{self._eta.total}] {record.cell.label}: {figure(record)}")

    def _say(self, text: str) -> None:
        # A reader that is gone (head) or a log on a full disk must not cost the measurement.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text + "\n")
            self._out.flush()


def figure(record: TrialRecord) -> str:
    """A trial's throughput, or what went wrong."""
    if record.throughput_examples_per_s:
        return f"{record.throughput_examples_per_s:,.0f} examples/s"
    return f"{record.status}: {record.reason}"
