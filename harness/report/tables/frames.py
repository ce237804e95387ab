"""A run as pandas frames: the columns of `harness.report.tables.columns`, with types that do not depend on the run.

Cells have theirs in `harness.report.tables.cells`, and what is of sides.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.analysis.comparison.result import Comparison
from harness.analysis.explain import explanations_of
from harness.record.reading import Run, RunListing
from harness.record.trial import TrialRecord, Windows
from harness.report.export.rows import ExportRow
from harness.report.tables.column import Column, ColumnKind
from harness.report.tables.columns import COMPARISON_COLUMNS, RUN_COLUMNS, TRIAL_COLUMNS, WINDOW_COLUMNS, WINDOW_KEYS
from harness.report.tables.explain import part_rows
from harness.report.tables.quantities import columns_for
from harness.report.tables.subject_columns import PART_COLUMNS
from harness.visible import printable

if TYPE_CHECKING:
    import pandas as pd

DTYPES: dict[ColumnKind, str] = {
    "text": "string",
    "category": "category",
    "count": "Int64",
    "number": "float64",
    "flag": "boolean",
    "time": "datetime64[us, UTC]",
}
"""The pandas type of each kind of column. A value that is not known is NA, or NaN in a `number`."""


def trial_frame(trials: Sequence[TrialRecord]) -> "pd.DataFrame":
    """One row a trial, failed ones included, in the order recorded."""
    import pandas as pd

    columns = columns_for(TRIAL_COLUMNS, (trial.cell for trial in trials))
    return pd.DataFrame({column.name: pandas_series(column, map(column.of, trials)) for column in columns})


def window_frame(trials: Sequence[TrialRecord]) -> "pd.DataFrame":
    """One row a window, warm-up included; trials without a window have no row."""
    import pandas as pd

    timed = [(trial, trial.windows) for trial in trials if trial.windows is not None]
    counts = [len(windows.seconds) for _, windows in timed]
    trial_of = np.repeat(np.arange(len(timed)), counts)
    columns = columns_for(WINDOW_COLUMNS, (trial.cell for trial, _ in timed))
    own = {column.name for column in columns if column.name in WINDOW_KEYS or column.name.startswith("cell.")}
    frame = pd.DataFrame(
        {
            column.name: pandas_series(column, (column.of(trial) for trial, _ in timed))
            .iloc[trial_of]
            .reset_index(drop=True)
            for column in columns
            if column.name in own
        }
    )
    for column in columns:
        if column.name not in own:
            values = [_window_values(column.name, trial, windows) for trial, windows in timed]
            frame[column.name] = pandas_series(column, np.concatenate([*values, np.empty(0)]))
    return frame


def listing_frame(listings: Sequence[RunListing]) -> "pd.DataFrame":
    """One row a run."""
    import pandas as pd

    return pd.DataFrame({c.name: pandas_series(c, map(c.of, listings)) for c in RUN_COLUMNS})


def part_frame(runs: Sequence[Run]) -> "pd.DataFrame":
    """One row a part of each cell's step, of runs of `explain`. UsageError on a run of another kind."""
    return run_frame(PART_COLUMNS, ((run, part_rows(explanations_of(run))) for run in runs))


def run_frame(columns: Sequence[Column], rows_of: Iterable[tuple[Run, list[ExportRow]]]) -> "pd.DataFrame":
    """These columns of the rows of each run, with the run's id."""
    import pandas as pd

    rows = [{"run_id": run.manifest.run_id, **row} for run, rows in rows_of for row in rows]
    return pd.DataFrame({c.name: pandas_series(c, [row.get(c.name) for row in rows]) for c in columns})


def comparison_frame(comparison: Comparison) -> "pd.DataFrame":
    """One row a comparison; the verdict on all, the margins and the remarks are in `attrs`."""
    import pandas as pd

    columns = columns_for(COMPARISON_COLUMNS, (side.cell for row in comparison.rows for side in (row.a, row.b)))
    frame = pd.DataFrame({c.name: pandas_series(c, map(c.of, comparison.rows)) for c in columns})
    frame.attrs = {
        "a": comparison.title_a,
        "b": comparison.title_b,
        "verdict": comparison.verdict,
        "delta": comparison.margins.delta,
        "epsilon": comparison.margins.epsilon,
        "margins_source": comparison.margins.source,
        "remarks": list(comparison.remarks),
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
    }
    return frame


def _window_values(name: str, trial: TrialRecord, windows: Windows) -> "np.ndarray[Any, Any]":
    """One column of one trial's windows."""
    seconds = np.asarray(windows.seconds, dtype=float)
    steps = windows.steps_per_window
    match name:
        case "window":
            return np.arange(len(seconds))
        case "round":
            return np.asarray(windows.rounds)
        case "measured":
            return (np.arange(len(seconds)) >= windows.measured_from).astype(float)
        case "steps":
            return np.full(len(seconds), steps)
        case "seconds":
            return seconds
        case "cpu_seconds" | "system_seconds" | "page_faults":
            return np.asarray(getattr(windows, name) or np.full(len(seconds), np.nan), dtype=float)
        case "step_time_s":
            return seconds / steps
        case "fastest_worker_seconds":
            return np.min(windows.workers, axis=0) if windows.workers else np.full(len(seconds), np.nan)
    if name == trial.cell.work.quantity.throughput_key:
        return trial.cell.work.amount * steps / seconds
    return np.full(len(seconds), np.nan)  # the throughput of work that is counted in something else


def pandas_series(column: Column, values: Iterable[Any]) -> "pd.Series[Any]":
    """A column of a frame, with the type of its kind."""
    import pandas as pd

    if isinstance(values, np.ndarray) and column.kind in ("count", "flag"):
        values = values.astype("int64" if column.kind == "count" else "bool")
    if column.kind in ("text", "category"):
        texts = pd.Series([None if value is None else printable(value) for value in values], dtype="string")
        return texts.astype("category") if column.kind == "category" else texts
    if column.kind == "time":
        moments = pd.to_datetime(pd.Series(list(values), dtype="string"), utc=True, format="ISO8601")
        return moments.astype(pd.DatetimeTZDtype("us", "UTC"))
    return pd.Series(values if isinstance(values, np.ndarray) else list(values), dtype=DTYPES[column.kind])
