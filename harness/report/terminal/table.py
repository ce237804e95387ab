"""A table drawn for a terminal."""

import io

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from harness.report.tables.table import Table


def table_text(table: Table, width: int = 240, styled: bool = False) -> str:
    """The table and its note in at most `width` columns. Marked rows begin with a star; `styled` sets them in bold."""
    shape = RichTable(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column in table.columns:
        shape.add_column(column.name, justify="right" if column.numeric else "left", overflow="fold")
    for number, row in enumerate(table.rows):
        marked = number in table.marked
        first, *rest = row
        shape.add_row(Text(f"* {first}" if marked else first), *map(Text, rest), style="bold" if marked else None)
    text = io.StringIO()
    colours = "standard" if styled else None
    Console(file=text, width=width, force_terminal=styled, color_system=colours, highlight=False).print(shape)  # type: ignore[arg-type]
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join([*lines, *([table.note, ""] if table.note else [])]) + "\n"
