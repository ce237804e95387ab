"""Tables on standard output."""

import shutil
import sys
from typing import TYPE_CHECKING

from harness.cli._terminal import heeds_control

if TYPE_CHECKING:
    from harness.report.comparison import Surface
    from harness.report.tables.table import Table

WIDE = 240
"""Columns in a pipe or a file, where nothing folds a table."""


def surface() -> "Surface":
    """Standard output as it is: as wide as the terminal, or as wide as any table needs."""
    from harness.report.comparison import Surface

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    return Surface(width, styled=heeds_control(sys.stdout))


def print_table(table: "Table") -> None:
    """A table as wide as the terminal allows; in a pipe, as wide as it needs."""
    from harness.report.terminal.table import table_text

    page = surface()
    print(table_text(table, page.width, page.styled), end="")
