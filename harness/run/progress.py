"""What a sweep tells while it runs; a terminal, a pipe and a test each listen in their own way."""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from harness.record.trial import TrialRecord
from harness.spec.cell import Cell


class Progress(Protocol):
    """A listener. `done` and `total` count trials."""

    def started(self, run_id: str, total: int, estimate_s: float) -> None:
        """The sweep begins; `total` trials are still to run."""

    def block(self, number: int, blocks: int, trials: int) -> None:
        """A group of `trials` trials of block `number` (from 0) of `blocks` begins."""

    def phase(self, cell: Cell, phase: str) -> None:
        """A trial of `cell` enters a phase."""

    def round(self, number: int, most: int, trials: int) -> None:
        """Round `number` of at most `most` begins; each of `trials` trials takes one window."""

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

    def started(self, run_id: str, total: int, estimate_s: float) -> None: ...
    def block(self, number: int, blocks: int, trials: int) -> None: ...
    def phase(self, cell: Cell, phase: str) -> None: ...
    def round(self, number: int, most: int, trials: int) -> None: ...
    def ended(self, record: TrialRecord) -> None: ...
    def skipped(self, trials: int) -> None: ...
    def more(self, trials: int) -> None: ...
    def finished(self) -> None: ...


class Eta:
    """Seconds left: the first estimate, then what the trials done so far have really taken."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.done = 0
        self.total = 0
        self._estimate_s = 0.0
        self._since = 0.0

    def start(self, total: int, estimate_s: float) -> None:
        """Begin with `total` trials and an estimate for all of them."""
        self.total, self._estimate_s, self._since, self.done = total, estimate_s, self._clock(), 0

    def left_s(self) -> float:
        """Expected seconds until the end; the measured pace counts once a fifth is done."""
        elapsed = self._clock() - self._since
        if self.done == 0 or self.done * 5 < self.total:
            return max(0.0, self._estimate_s - elapsed)
        return elapsed / self.done * max(0, self.total - self.done)

    def text(self) -> str:
        """`3 min 20 s`."""
        return duration(self.left_s())


def duration(seconds: float) -> str:
    """A duration as people say it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class PlainLines(Quiet):
    """One line a trial, for a pipe, a log or CI."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._eta = Eta()

    def started(self, run_id: str, total: int, estimate_s: float) -> None:
        """Name the run."""
        self._eta.start(total, estimate_s)
        self._say(f"run {run_id}: {total} trials, about {duration(estimate_s)}")

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Announce a group."""
        self._say(f"block {number + 1} of {blocks}: {trials} trials take turns, about {self._eta.text()} left")

    def skipped(self, trials: int) -> None:
        """Fewer are left."""
        self._eta.total -= trials

    def more(self, trials: int) -> None:
        """More are left."""
        self._eta.total += trials

    def ended(self, record: TrialRecord) -> None:
        """One line with the trial's figure or what went wrong."""
        self._eta.done += 1
        figure = (
            f"{record.throughput_examples_per_s:,.0f} examples/s"
            if record.throughput_examples_per_s
            else f"{record.status}: {record.reason}"
        )
        self._say(f"[{self._eta.done}/{self._eta.total}] {record.cell.label}: {figure}")

    def _say(self, text: str) -> None:
        # A reader that is gone (head) or a log on a full disk must not cost the measurement.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text + "\n")
            self._out.flush()
