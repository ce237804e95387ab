"""A validation of the method: how often it is wrong here, and what it can see."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.record.reading import Run
from harness.record.validation import ValidationRecord, with_recorded_rules
from harness.report.kinds.base import OfSides, PageRequest
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.report.comparison import Surface


def validation_text(record: ValidationRecord, path: Path, surface: "Surface") -> str:
    """The tables and sentences of a validation whose records are at `path`."""
    from harness.report.tables.validation import validation_lines, validation_tables
    from harness.report.terminal.table import table_text

    tables = "".join(table_text(table, surface.width, surface.styled) for table in validation_tables(record))
    return tables + "".join(f"{line}\n" for line in (*validation_lines(record), f"records: {path}"))


class _Validation(OfSides):
    name = "validation"
    page_kind = "validation"
    by_side = "python -m harness show {run} --json"

    def _record(self, run: Run) -> ValidationRecord:
        from harness.analysis.validation.summary import validation_of

        return with_recorded_rules(validation_of(run), run.path)

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """See Presentation."""
        from harness.report.export.base import write
        from harness.report.tables.validation import validation_lines, validation_page

        record = self._record(run)
        write(request.target, validation_page(record).encode("utf-8", "replace"), "FILE.html")
        return list(validation_lines(record))

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """See Presentation."""
        return validation_text(self._record(run), run.path, surface)

    def as_json(self, run: Run, results: Path) -> str:
        """See Presentation."""
        return json_text(self._record(run).model_dump(mode="json"))


KIND = _Validation()
