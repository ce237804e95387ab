"""What `harness.report.kinds` tells of a run as pandas frames, the same columns for runs of every kind.

Cells are a kind's own; collectives, pipelines and limits are of each side where a run has sides.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.record.reading import Run
from harness.report.export.rows import ExportRow
from harness.report.kinds import presentation_of
from harness.report.limits import limit_rows
from harness.report.tables.collectives import collective_rows
from harness.report.tables.column import Column
from harness.report.tables.columns import SUMMARY_COLUMNS
from harness.report.tables.frames import pandas_series, run_frame
from harness.report.tables.pipelines import pipeline_rows
from harness.report.tables.quantities import columns_for
from harness.report.tables.subject_columns import COLLECTIVE_COLUMNS, PIPELINE_COLUMNS, RATE_COLUMNS
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


def collective_frame(runs: Sequence[Run], results: Path) -> "pd.DataFrame":
    """One row a collective of a size, with the limits of its machine that are in `results`. UsageError on a run without
    collectives."""
    return _side_frame(COLLECTIVE_COLUMNS, runs, lambda run: collective_rows(run, results))


def pipeline_frame(runs: Sequence[Run]) -> "pd.DataFrame":
    """One row a pipeline, and one a stage that it is cut off behind. UsageError on a run without pipelines."""
    return _side_frame(PIPELINE_COLUMNS, runs, pipeline_rows)


def rate_frame(runs: Sequence[Run], results: Path) -> "pd.DataFrame":
    """One row a cell whose operations were counted, with the limits of its machine that are in `results`."""
    return _side_frame(RATE_COLUMNS, runs, lambda run: limit_rows(run, results))


def _side_frame(
    columns: Sequence[Column], runs: Sequence[Run], rows_of: Callable[[Run], list[ExportRow]]
) -> "pd.DataFrame":
    """These columns of the rows of each side, where a run has sides: one figure of both would average them."""
    return run_frame(columns, (found for run in runs for found in _by_side(run, rows_of)))


def _by_side(run: Run, rows_of: Callable[[Run], list[ExportRow]]) -> list[tuple[Run, list[ExportRow]]]:
    """Of each side that has such rows; UsageError where none has."""
    found: list[tuple[Run, list[ExportRow]]] = []
    without: UsageError | None = None
    for side, of in presentation_of(run.manifest).each_side(run).items():
        try:
            found.append((of, [{"side": side, **row} for row in rows_of(of)]))
        except UsageError as error:
            without = error
    if without is not None and not found:
        raise without
    return found
