"""Parquet, one row a window."""

from dataclasses import dataclass
from pathlib import Path

from harness.report.export.as_parquet import expect_parquet, write_parquet
from harness.report.export.base import Exporter, RunData
from harness.report.tables.frames import window_frame


@dataclass(frozen=True)
class _WindowsParquet:
    name: str = "windows-parquet"
    summary: str = "Parquet, one row a window (needs pyarrow)"
    suffix: str = ".parquet"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        expect_parquet(self.name, target)
        write_parquet(window_frame(run.trials), target)
        return None


EXPORTER: Exporter = _WindowsParquet()
