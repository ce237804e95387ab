"""Cells as a pandas frame, the same columns for runs of every kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.record.reading import Run
from harness.report.export.rows import ExportRow
from harness.report.kinds import presentation_of
from harness.report.limits import limit_rows
from harness.report.tables.columns import RATE_COLUMNS, SUMMARY_COLUMNS
from harness.report.tables.frames import pandas_series, run_frame
from harness.report.tables.quantities import columns_for
from harness.spec.quantity import EXAMPLES

if TYPE_CHECKING:
    import pandas as pd


def cell_frame(runs: Sequence[Run]) -> "pd.DataFrame":
    """One row a cell with its estimates; of an imported run one row a published figure, without a rank."""
    import pandas as pd

    rows = [
        {"run_id": run.manifest.run_id, **row} for run in runs for row in presentation_of(run.manifest).cell_rows(run)
    ]
    published = [EXAMPLES] if any(row.get(EXAMPLES.throughput_key) is not None for row in rows) else []
    columns = columns_for(SUMMARY_COLUMNS, (cell for run in runs for cell in run.manifest.cells), published)
    return pd.DataFrame({c.name: pandas_series(c, [row.get(c.name) for row in rows]) for c in columns})


def rate_frame(runs: Sequence[Run], results: Path) -> "pd.DataFrame":
    """One row a cell whose operations were counted, of each side where a run has sides, with the limits of its machine
    that are in `results`."""
    return run_frame(RATE_COLUMNS, (found for run in runs for found in _rates_by_side(run, results)))


def _rates_by_side(run: Run, results: Path) -> list[tuple[Run, list[ExportRow]]]:
    """Of each side whose operations were counted; UsageError where those of none were."""
    found: list[tuple[Run, list[ExportRow]]] = []
    uncounted: UsageError | None = None
    for side, of in presentation_of(run.manifest).each_side(run).items():
        try:
            found.append((of, [{"side": side, **row} for row in limit_rows(of, results)]))
        except UsageError as error:
            uncounted = error
    if uncounted is not None and not found:
        raise uncounted
    return found
