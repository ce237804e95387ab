"""Records and summaries as flat rows of plain values, for the exporters, and rows as CSV."""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis import CellSummary, Interval, RunSummary, WorkloadSummary
from harness.record.trial import TrialRecord
from harness.report.tables.column import Column
from harness.report.tables.columns import SUMMARY_COLUMNS, TRIAL_COLUMNS
from harness.report.tables.quantities import columns_for
from harness.report.values import plain
from harness.report.words.headline import varying
from harness.visible import printable

ExportRow = dict[str, Any]
FORMULA = re.compile(r"\s*(?:[=@]|[+-](?!\d[^(|!=@]*\Z))")
"""How text begins that a spreadsheet takes for a formula; `+3 %` and `-2.5 [-3 to -2]` are none."""


def trial_rows(trials: Sequence[TrialRecord]) -> list[ExportRow]:
    """One row a trial, in the order recorded: the columns of `TRIAL_COLUMNS`, whatever the run."""
    columns = columns_for(TRIAL_COLUMNS, (trial.cell for trial in trials))
    return [{column.name: column.of(trial) for column in columns} for trial in trials]


def cell_rows(summary: RunSummary) -> list[ExportRow]:
    """One row a cell: what it is, what became of it, and its estimates."""
    columns = columns_for(SUMMARY_COLUMNS, (cell.trials.cell for cell in summary.cells))
    return [_row(columns, cell) for cell in summary.cells]


def cell_row(cell: CellSummary) -> ExportRow:
    """One cell as a flat row; what is not known is None."""
    return _row(columns_for(SUMMARY_COLUMNS, [cell.trials.cell]), cell)


def _row(columns: Sequence[Column], cell: CellSummary) -> ExportRow:
    row = {column.name: column.of(cell) for column in columns if column.name != "run_id"}
    # a phase that no trial reached is no column
    return {name: value for name, value in row.items() if value is not None or not name.startswith("phases.")}


def answer_row(work: WorkloadSummary) -> ExportRow:
    """A workload's answer for machines; of a key of which its ranking holds several values, the list of them."""
    answer = asdict(work.answer)
    cells = [cell.trials.cell for cell in work.cells if cell.place is not None]
    several = {key: list(dict.fromkeys(cell.get(key) for cell in cells)) for key in varying(work)}
    return {"workload": {**dict(work.workload.keys), **several}, "answer": plain(answer)}


def to_csv(rows: Sequence[ExportRow]) -> str:
    """RFC 4180 with a header; the columns are the union over rows, what is unknown or no number is an empty field."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([field(row.get(key)) for key in columns] for row in rows)
    return text.getvalue()


def field(value: Any) -> Any:
    """A value as CSV has it: of text what can be shown, with an apostrophe before what a spreadsheet would work out."""
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if FORMULA.match(text) else text
    return None if isinstance(value, float) and not math.isfinite(value) else value


def interval_row(name: str, interval: Interval | None) -> ExportRow:
    """The three columns of an interval; None where there is none."""
    return {
        name: interval.value if interval else None,
        f"{name}_low": interval.low if interval else None,
        f"{name}_high": interval.high if interval else None,
    }
