"""Tables, as CSV and as Parquet: a row a trial, a cell or a window."""

import importlib.util
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis import summarise
from harness.errors import HarnessError, UsageError
from harness.record.reading import Run
from harness.report.export.base import Exporter, deliver, write
from harness.report.export.rows import cell_rows, field, to_csv, trial_rows
from harness.report.tables.frames import trial_frame, window_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CsvTable:
    """A table as text."""

    name: str
    summary: str
    text: Callable[[Run], str]
    suffix: str = ".csv"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        return deliver(self.text(run), target)


@dataclass(frozen=True)
class ParquetTable:
    """A table with its types, for which pyarrow is needed."""

    name: str
    summary: str
    frame: "Callable[[Run], pd.DataFrame]"
    suffix: str = ".parquet"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter. HarnessError where pyarrow is missing, UsageError where there is no file to write to."""
        if importlib.util.find_spec("pyarrow") is None:
            raise HarnessError(f"format {self.name} needs pyarrow: pip install pyarrow, or export csv")
        if target is None:
            raise UsageError(
                f"output: {self.name} is not text and cannot be printed; name a file with --output FILE.parquet"
            )
        buffer = io.BytesIO()
        self.frame(run).to_parquet(buffer, engine="pyarrow", index=False)
        write(target, buffer.getvalue())
        return None


def _cells(run: Run) -> str:
    return to_csv(cell_rows(summarise(run.manifest, run.trials, run.rank_unproved)))


def _windows(run: Run) -> str:
    frame = window_frame(run.trials)
    for name in frame.select_dtypes(["category", "string", "object"]):
        frame[name] = frame[name].map(field, na_action="ignore")
    return frame.to_csv(index=False, lineterminator="\n")


def _trials_with_windows(run: Run) -> "pd.DataFrame":
    """A row a trial as in CSV, and each trial's windows as lists."""
    import pandas as pd  # slow to import, and few exporters need it

    frame = trial_frame(run.trials)
    windows = [trial.windows for trial in run.trials]
    for name in ("seconds", "cpu_seconds", "rounds"):
        lists = [getattr(item, name) if item else None for item in windows]
        frame[f"windows.{name}"] = pd.Series(lists, dtype="object", index=frame.index)
    return frame


EXPORTERS: tuple[Exporter, ...] = (
    CsvTable(
        "csv",
        "one row a trial, tidy: every axis of the cell, status, phases, estimates",
        lambda run: to_csv(trial_rows(run.trials)),
    ),
    CsvTable("cells", "CSV, one row a cell: status, throughput, speed-ups and efficiencies with intervals", _cells),
    CsvTable("windows", "CSV, one row a window, warm-up included, with the cell's axes", _windows),
    ParquetTable("parquet", "one row a trial with its windows as lists (needs pyarrow)", _trials_with_windows),
    ParquetTable("windows-parquet", "Parquet, one row a window (needs pyarrow)", lambda run: window_frame(run.trials)),
)
