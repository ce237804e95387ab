"""CSV, one row a cell with its estimates."""

from dataclasses import dataclass
from pathlib import Path

from harness.analysis import summarise
from harness.report.export.as_csv import to_csv
from harness.report.export.base import Exporter, RunData, deliver
from harness.report.export.rows import cell_rows
from harness.report.tables.published import imported_rows


@dataclass(frozen=True)
class _Cells:
    name: str = "cells"
    summary: str = "CSV, one row a cell: status, throughput, speed-ups and efficiencies with intervals"
    suffix: str = ".csv"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        if run.manifest.imported is not None:
            return deliver(to_csv(imported_rows(run.manifest)), target)
        return deliver(to_csv(cell_rows(summarise(run.manifest, run.trials))), target)


EXPORTER: Exporter = _Cells()
