"""Parquet: one row a trial as in CSV, and each trial's windows as lists."""

import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessError, UsageError
from harness.report.export.base import Exporter, RunData, write
from harness.report.tables.frames import trial_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class _Parquet:
    name: str = "parquet"
    summary: str = "one row a trial with its windows as lists (needs pyarrow)"
    suffix: str = ".parquet"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        expect_parquet(self.name, target)
        import pandas as pd  # slow to import, and few exporters need it

        frame = trial_frame(run.trials)
        windows = [trial.windows for trial in run.trials]
        for name in ("seconds", "cpu_seconds", "rounds"):
            lists = [getattr(item, name) if item else None for item in windows]
            frame[f"windows.{name}"] = pd.Series(lists, dtype="object", index=frame.index)
        write_parquet(frame, target)
        return None


def expect_parquet(name: str, target: Path | None) -> None:
    """HarnessError where pyarrow is missing, UsageError where there is no file to write to."""
    if importlib.util.find_spec("pyarrow") is None:
        raise HarnessError(f"format {name} needs pyarrow: pip install pyarrow, or export csv")
    if target is None:
        raise UsageError(f"output: {name} is not text and cannot be printed; name a file with --output FILE.parquet")


def write_parquet(frame: "pd.DataFrame", target: Path | None) -> None:
    """Write `frame` to `target`, whole or not at all. Raises StorageError."""
    assert target is not None
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    write(target, buffer.getvalue())


EXPORTER: Exporter = _Parquet()
