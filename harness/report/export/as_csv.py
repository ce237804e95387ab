"""CSV, one row a trial."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.report.export.base import Exporter, RunData, deliver
from harness.report.export.rows import Row, trial_rows
from harness.report.words.text import printable


@dataclass(frozen=True)
class _Csv:
    name: str = "csv"
    summary: str = "one row a trial, tidy: every axis of the cell, status, phases, estimates"
    suffix: str = ".csv"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        return deliver(to_csv(trial_rows(run.trials)), target)


def to_csv(rows: Sequence[Row]) -> str:
    """RFC 4180 with a header; the columns are the union over rows, what is unknown or no number is an empty field."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(row.get(key)) for key in columns] for row in rows)
    return text.getvalue()


def _field(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


EXPORTER: Exporter = _Csv()
