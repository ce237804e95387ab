"""A table that was imported: published figures, of which nothing was measured here."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.record.imported import ImportedRecord
from harness.record.reading import Run, RunListing
from harness.report.kinds.base import PageRequest, Presentation
from harness.visible import one_line, plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report.comparison import Surface
    from harness.report.export.base import Exporter


class _Imported(Presentation):
    name = "import"
    page_kind = "imported"

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """See Presentation."""
        from harness.report.export.base import write
        from harness.report.tables.published import imported_page

        write(request.target, imported_page(run.manifest).encode("utf-8", "replace"), "FILE.html")
        return []

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """See Presentation."""
        from harness.report.tables.published import imported_table
        from harness.report.terminal.table import table_text

        table = imported_table(run.manifest.part(ImportedRecord))
        return f"{one_line(run.manifest.run_id)}\n{table_text(table, surface.width, surface.styled)}"

    def as_json(self, run: Run, results: Path) -> str:
        """See Presentation."""
        return self.exporters()["json"].export(run, None) or ""

    def exporters(self) -> "Mapping[str, Exporter]":
        """The other formats are of trials."""
        from harness.report.export.as_tables import CsvTable
        from harness.report.export.rows import to_csv
        from harness.report.tables.published import imported_rows

        cells = CsvTable("cells", "CSV, one row a published figure", lambda run: to_csv(imported_rows(run.manifest)))
        return {"cells": cells, "json": super().exporters()["json"]}

    def lacks_format(self, run: Run) -> str:
        """See Presentation."""
        has = ", ".join(self.exporters())
        return f"--format: '{run.manifest.run_id}' was imported and has no trials; expected one of {has}"

    def listed(self, listing: RunListing) -> str:
        """See Presentation."""
        return f"{plural(listing.cells or 0, 'published figure')}, not measured here"

    def cell_rows(self, run: Run) -> list[dict[str, Any]]:
        """See Presentation."""
        from harness.report.tables.published import imported_rows

        return [{**row, "status": "imported", "trials_ok": row["trials"]} for row in imported_rows(run.manifest)]


KIND = _Imported()
