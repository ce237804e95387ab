"""CSV, one row a window."""

from dataclasses import dataclass
from pathlib import Path

from harness.report.export.base import Exporter, RunData, deliver
from harness.report.tables.frames import window_frame


@dataclass(frozen=True)
class _Windows:
    name: str = "windows"
    summary: str = "CSV, one row a window, warm-up included, with the cell's axes"
    suffix: str = ".csv"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        return deliver(window_frame(run.trials).to_csv(index=False, lineterminator="\n"), target)


EXPORTER: Exporter = _Windows()
