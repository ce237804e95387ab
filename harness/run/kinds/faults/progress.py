"""What a run of faults tells while it runs: a line a job."""

import sys
from typing import TextIO

from harness.record.faults import FaultRecord
from harness.run.progress import Progress, duration, say_line


class FaultLines:
    """One line a job on standard error; with `quiet` none."""

    def __init__(self, quiet: bool = False, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._quiet = quiet
        self._count = Progress()

    def started(self, run_id: str, jobs: int, estimate_s: float) -> None:
        """Name the run."""
        self._count.started(run_id, jobs, estimate_s)
        self._say(f"run {run_id}: {jobs} jobs, about {duration(estimate_s)}")

    def ended(self, record: FaultRecord) -> None:
        """How a job ended."""
        self._count.done += 1
        place = f"[{self._count.done}/{self._count.total}, {self._count.left()}]"
        self._say(f"{place} {record.scenario}: {words_of(record)}")

    def finished(self) -> None:
        """The last job's line says it."""

    def _say(self, text: str) -> None:
        if not self._quiet:
            say_line(text, self._out)


def words_of(record: FaultRecord) -> str:
    """A record in one line."""
    parts = [record.status.replace("_", " ")]
    if record.reason:
        parts[0] += f": {record.reason}"
    if record.detections:
        first = record.detections[0]
        parts.append(f"noticed after {first.after_s:.2f} s ({first.by.replace('_', ' ')}, {first.who})")
    if record.useful_step_after_s is not None:
        parts.append(f"next useful step after {record.useful_step_after_s:.2f} s")
    if record.steps_lost and record.status != "lost_state":
        parts.append(f"{record.steps_lost} steps done again")
    return ", ".join(parts)
