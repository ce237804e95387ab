"""Progress as plain lines, for a pipe, a log or CI."""

import sys
from typing import TextIO

from harness.record.trial import TrialRecord
from harness.run.progress.base import in_words, say_line
from harness.run.progress.eta import Timed
from harness.visible import plural


class PlainLines(Timed):
    """One line a trial."""

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
        self._say(f"block {number + 1} of {blocks}{ahead}: {turns}, {self.left()}")

    def ended(self, record: TrialRecord) -> None:
        """One line with the trial's figure or what went wrong."""
        super().ended(record)
        self._say(f"[{self.done}/{self.total}] {self.name_of(record.cell, record.side)}: {figure(record)}")

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
