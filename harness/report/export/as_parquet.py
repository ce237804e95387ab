"""Parquet: one row a trial as in CSV, and each trial's windows as lists."""

import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.report.export.base import Exporter, RunData, write
from harness.report.flat import trial_rows


@dataclass(frozen=True)
class _Parquet:
    name: str = "parquet"
    summary: str = "one row a trial with its windows as lists (needs pyarrow)"
    suffix: str = ".parquet"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        if importlib.util.find_spec("pyarrow") is None:
            raise HarnessError("format parquet needs pyarrow: pip install pyarrow, or export csv")
        if target is None:
            raise UsageError(
                "output: parquet is not text and cannot be printed; name a file with --output FILE.parquet"
            )
        # Slow to import, and the only exporter that needs it.
        import pandas as pd

        frame = pd.DataFrame(trial_rows(run.trials)).convert_dtypes()
        # by name, not by the values that this run happens to have: the schema must not change from run to run
        frame = frame.astype({name: kind for name in frame.columns if (kind := _kind(str(name)))})
        windows = [trial.windows for trial in run.trials]
        for name in ("seconds", "cpu_seconds", "rounds"):
            lists = [getattr(item, name) if item else None for item in windows]
            frame[f"windows.{name}"] = pd.Series(lists, dtype="object", index=frame.index)
        buffer = io.BytesIO()
        frame.to_parquet(buffer, engine="pyarrow", index=False)
        write(target, buffer.getvalue())
        return None


def _kind(column: str) -> str | None:
    if column.endswith(("_s", "_per_example", "_seconds")) or column == "final_loss":
        return "Float64"
    return "Int64" if column.endswith("_bytes") else None


EXPORTER: Exporter = _Parquet()
