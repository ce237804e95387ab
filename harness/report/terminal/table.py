"""A table drawn for a terminal."""

import io
from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from harness.report.tables.table import Table
from harness.report.words.text import listed

Rooms = Sequence[tuple[int, Sequence[str] | None]]
"""From how many columns of the terminal which columns of a table have room, the widest first; None is all."""
_MARK = "* "
_FRAME, _BETWEEN = 4, 3
"""Columns that a table takes at its edges, and between two of its own."""


def table_text(table: Table, width: int = 240, styled: bool = False) -> str:
    """The table and its note in at most `width` columns. Marked rows begin with a star; `styled` sets them in bold."""
    shape = RichTable(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column, most in zip(table.columns, _most(table, width), strict=True):
        justify = "right" if column.numeric else "left"
        shape.add_column(column.name, justify=justify, overflow="fold", max_width=most)  # type: ignore[arg-type]
    for number, row in enumerate(table.rows):
        marked = number in table.marked
        first, *rest = row
        shape.add_row(Text(f"{_MARK}{first}" if marked else first), *map(Text, rest), style="bold" if marked else None)
    text = io.StringIO()
    colours = "standard" if styled else None
    Console(file=text, width=width, force_terminal=styled, color_system=colours, highlight=False).print(shape)  # type: ignore[arg-type]
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join([*lines, *([table.note, ""] if table.note else [])]) + "\n"


def _most(table: Table, width: int) -> list[int | None]:
    """How wide each column may be: where not all have room, the head of numbers is broken before a name or a number."""
    cells = [max((cell_len(row[place]) for row in table.rows), default=0) for place in range(len(table.columns))]
    cells[0] += len(_MARK) if table.marked else 0
    wide = [max(cell, cell_len(column.name)) for cell, column in zip(cells, table.columns, strict=True)]
    if sum(wide) + _FRAME + _BETWEEN * (len(wide) - 1) <= width:
        return [None] * len(wide)
    words = [max(map(cell_len, column.name.split()), default=0) for column in table.columns]
    return [
        max(cell, word) if column.numeric else None
        for column, cell, word in zip(table.columns, cells, words, strict=True)
    ]


def in_room(table: Table, rooms: Rooms, width: int) -> Table:
    """The columns that a terminal of `width` has room for; the note says which it has not."""
    names = next(names for least, names in rooms if width >= least)
    kept = [place for place, column in enumerate(table.columns) if names is None or column.name in names]
    absent = [column.name for place, column in enumerate(table.columns) if place not in kept]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
        note="\n".join(filter(None, (table.note, absent_words(absent, rooms[0][0])))),
    )


def absent_words(names: Sequence[str], all_from: int) -> str:
    """Which columns of a table are not shown, and how to see them; empty where all are."""
    if not names:
        return ""
    told = listed([f"'{name}'" for name in names], most=len(names))
    return f"No room for {told}: a terminal of {all_from} columns shows all, and so does a pipe into less -S."
