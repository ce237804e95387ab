"""A run of faults: what they cost, and whether the job came back right."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.record.fault_log import load_faults
from harness.record.faults import FaultsPlan
from harness.record.reading import Run
from harness.report.kinds.base import PageRequest, Presentation
from harness.visible import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.analysis.faults import FaultsSummary
    from harness.report.comparison import Surface
    from harness.report.export.base import Exporter


def _summary(run: Run) -> "FaultsSummary":
    from harness.analysis.faults import summarise_faults

    return summarise_faults(run.manifest.part(FaultsPlan), load_faults(run.path))


class _Faults(Presentation):
    name = "faults"
    page_kind = "faults"

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """See Presentation."""
        from harness.report.export.base import write
        from harness.report.faults.page import faults_lines, faults_page

        summary = _summary(run)
        write(request.target, faults_page(run.manifest, summary).encode("utf-8", "replace"), "FILE.html")
        return list(faults_lines(summary))

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """See Presentation."""
        from harness.report.faults.page import faults_lines, faults_tables
        from harness.report.terminal.table import table_text
        from harness.report.words.brief import where_kept

        summary = _summary(run)
        tables = faults_tables(summary, run.manifest.part(FaultsPlan))
        drawings = "".join(table_text(table, surface.width, surface.styled) for table in tables)
        return drawings + "".join(f"{line}\n" for line in (*faults_lines(summary), *where_kept(run.path)))

    def as_json(self, run: Run, results: Path) -> str:
        """See Presentation."""
        from harness.report.faults.as_json import faults_json

        return json_text({"run_id": run.manifest.run_id, "path": str(run.path), **faults_json(_summary(run))})

    def exporters(self) -> "Mapping[str, Exporter]":
        """None: formats are of trials and cells."""
        return {}

    def lacks_format(self, run: Run) -> str:
        """See Presentation."""
        return f"RUN: '{run.path.name}' is a run of faults; `harness show --json` gives its figures"


KIND = _Faults()
