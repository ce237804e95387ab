"""CSV, one row a trial."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.report.export.base import Exporter, RunData, deliver
from harness.report.flat import Row, trial_rows
from harness.report.text import printable


@dataclass(frozen=True)
class _Csv:
    name: str = "csv"
    summary: str = "one row a trial, tidy: every axis of the cell, status, phases, estimates"
    suffix: str = ".csv"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        return deliver(to_csv(trial_rows(run.trials)), target)


def to_csv(rows: Sequence[Row]) -> str:
    """RFC 4180 with a header; the columns are the union over rows, an unknown value is an empty field."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: printable(value) if isinstance(value, str) else value for key, value in row.items()})
    return text.getvalue()


EXPORTER: Exporter = _Csv()
