"""A table as plain heads and rows of text: the page, the terminal and Markdown show the same one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.report.page.downloads import Download, csv_download
from harness.report.words.names import slug

MOST_ROWS = 200
"""Of a table on a page: as many as anybody reads. The CSV below it has all."""


@dataclass(frozen=True)
class Head:
    """Of a column; what is `numeric` is set flush right."""

    name: str
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A title, columns, rows of printable text, and a note on how to read it."""

    title: str
    columns: tuple[Head, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    marked: frozenset[int] = frozenset()
    """Rows to be set apart: in the ranking, those that cannot be told apart from the fastest."""
    unfolded: bool = False
    """Whether a page shows it from the start, though it stands below another."""

    @property
    def first(self) -> tuple[tuple[str, ...], ...]:
        """The rows that a page shows."""
        return self.rows[:MOST_ROWS]

    @property
    def left_out(self) -> str:
        """How many rows a page does not show, before where they are; empty when it shows all."""
        more = len(self.rows) - MOST_ROWS
        if more <= 0:
            return ""
        marked = sum(row >= MOST_ROWS for row in self.marked)
        apart = f" ({marked:,} of them marked)" if marked else ""
        return f"The first {MOST_ROWS:,} of {len(self.rows):,} rows; {more:,} more{apart} are in"

    @property
    def csv(self) -> Download:
        """A link that saves every row as CSV, in the table's words."""
        names = [column.name for column in self.columns]
        rows = [
            dict(zip(names, row, strict=True)) | ({"marked": number in self.marked} if self.marked else {})
            for number, row in enumerate(self.rows)
        ]
        return csv_download(rows, slug(self.title).lower() or "table")


def noted_once(tables: Sequence[Table]) -> list[Table]:
    """The same, of which what is to be noted of several stands below the last of them."""
    last = {table.note: number for number, table in enumerate(tables)}
    return [table if last[table.note] == number else replace(table, note="") for number, table in enumerate(tables)]
