"""What a sweep tells while it runs; a terminal, a pipe and a test each listen in their own way."""

import contextlib
from collections.abc import Sequence
from typing import Protocol, TextIO

from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.spec.work import Cell
from harness.visible import one_line


class Listener(Protocol):
    """What a run of any kind tells: its end. The rest is between the run and a listener of its own kind."""

    def finished(self) -> None:
        """The run is over, however it ended."""


class Progress:
    """A listener, which says nothing until it is told how. What it counts are trials."""

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """What a sweep sets out to do, and what of it was measured before it was resumed. Before `started`."""

    def started(self, run_id: str, total: int, estimate_s: float, unknown: str = "") -> None:
        """The sweep begins; `total` trials are still to run. `unknown` is what the estimate has nothing of."""

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """A trial of each of `cells` is set up next, in this order; `later` are the groups after it, as known now."""

    def block(self, number: int, blocks: int, trials: int) -> None:
        """A group of `trials` trials of block `number` (from 0) of `blocks` begins."""

    def look(self, number: int, looks: int, after: int, of: str = "") -> None:
        """The blocks up to look `number` (from 1) of at most `looks` run next; it is after `after` of them in all.

        `of` says which decision is looked at, where a run makes several.
        """

    def phase(self, cell: Cell, phase: str) -> None:
        """A trial of `cell` enters a phase."""

    def round(self, number: int, rounds: int, trials: int) -> None:
        """Round `number` of `rounds` begins; each of `trials` trials takes one window."""

    def turn(self, cell: Cell, side: str | None = None) -> None:
        """A trial of `cell`, of that side of a comparison, is to take a window next.

        From the return to `window` nothing may use the processor.
        """

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """It took `seconds` for `steps` steps."""

    def ended(self, record: TrialRecord) -> None:
        """A trial ended and its record is on disk."""

    def skipped(self, trials: int) -> None:
        """`trials` planned trials need not run (their cell turned out to be unsupported)."""

    def more(self, trials: int) -> None:
        """`trials` beyond those planned so far will run (a second stage, or a trial that is repeated)."""

    def finished(self) -> None:
        """See Listener."""


def on_side(label: str, side: str | None) -> str:
    """A cell's label with its side: `A, mirrored ×2`; of a validation the arm's name."""
    return label if side is None else f"{side.upper() if len(side) == 1 else side}, {label}"


class Quiet(Progress):
    """Says nothing."""


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
