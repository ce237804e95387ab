"""The rows of a comparison as the one table that every format shows."""

from collections.abc import Sequence
from dataclasses import replace

from harness.analysis.cells import CellTrials
from harness.analysis.comparison import Comparison, Row
from harness.report.comparison.notes import more_words
from harness.report.comparison.words import count_words, cpu_words, quantity_of_rows, row_words
from harness.report.tables.table import Head, Table
from harness.report.words.text import NOTHING, significant
from harness.visible import printable

_NOTE = (
    "B against A: throughput (examples/s) and CPU seconds an example, each with its 95 % interval. Throughputs of a "
    "side by itself carry the machine's drift; the comparison is not made from them."
)
_HOW, _MORE = 6, 7
"""Places of two columns that are not always shown."""
_NARROW = ("cell", "verdict", "CPU ", "from", "to decide")


def comparison_table(comparison: Comparison) -> Table:
    """A row a comparison, in the order of the run; marked are those that are slower."""
    quantity = quantity_of_rows(comparison.rows)
    columns = (
        Head("cell", False),
        Head("verdict", False),
        Head(f"CPU {quantity.each}", False),
        Head(f"A, {quantity.unit}"),
        Head(f"B, {quantity.unit}"),
        Head("from", False),
        Head("how", False),
        Head("to decide", False),
    )
    rows = tuple(tuple(printable(text) for text in _row(comparison, row)) for row in comparison.rows)
    # a column with nothing to tell apart is left out: one method is named in the rule
    one_method = len({row[_HOW] for row in rows if row[_HOW] != NOTHING}) <= 1
    left_out = {_HOW} if one_method else set()
    if not any(row[_MORE] for row in rows):
        left_out.add(_MORE)
    shown = [index for index in range(len(columns)) if index not in left_out]
    slower = (number for number, row in enumerate(comparison.rows) if row.verdicts.wall.verdict == "slower")
    whole = Table("B against A", columns, rows, quantity.worded(_NOTE), frozenset(slower))
    return _only(whole, shown)


def narrowed(table: Table) -> Table:
    """The columns that matter most, for a pull request or a narrow terminal."""
    return _only(table, [index for index, column in enumerate(table.columns) if column.name.startswith(_NARROW)])


def _only(table: Table, shown: Sequence[int]) -> Table:
    return replace(
        table,
        columns=tuple(table.columns[index] for index in shown),
        rows=tuple(tuple(row[index] for index in shown) for row in table.rows),
    )


def _row(comparison: Comparison, row: Row) -> tuple[str, ...]:
    wall = row.verdicts.wall
    method = wall.estimate.method if wall.estimate is not None else "none"
    return (
        row.name,
        row_words(row),
        cpu_words(row),
        _throughput(row.a),
        _throughput(row.b),
        count_words(comparison, row),
        method if method != "none" else NOTHING,
        more_words(comparison, row),
    )


def _throughput(side: CellTrials) -> str:
    return significant(side.measured.throughput.value) if side.measured is not None else NOTHING
