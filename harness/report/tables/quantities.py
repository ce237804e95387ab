"""Columns in the quantities that a run's work is counted in, and for the keys that its kinds of work have."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from harness.report.tables.column import Column, ColumnKind, kind_of
from harness.report.tables.columns import CELL_COLUMNS
from harness.report.values import value_at
from harness.spec.quantity import EXAMPLES, Quantity
from harness.spec.work import Cell

_LAST_KEY = CELL_COLUMNS[-1].name.removeprefix("cell.")


def columns_for(
    columns: Sequence[Column], cells: Iterable[Cell], beside: Sequence[Quantity] = ()
) -> tuple[Column, ...]:
    """`columns` for rows of `cells`. Where all of these are trainings it is `columns` as they are.

    A figure in a quantity has a column for each quantity that the cells' work has, empty in the rows of the others:
    no column mixes units; `beside` are those of rows without a cell. Behind the keys of a training stand those of
    other kinds of work.
    """
    found = list(dict.fromkeys(cells))
    quantities = list(dict.fromkeys([*(cell.work.quantity for cell in found), *beside])) or [EXAMPLES]
    fields = {key: field for cell in found for key, field in type(cell).model_fields.items() if not _is_known(key)}
    made: list[Column] = []
    for column in columns:
        made += [_counted(column, quantity) for quantity in quantities] if _is_counted(column) else [column]
        if column.name.removeprefix("cell.") == _LAST_KEY:
            made += [_of_key(column, key, kind_of(field.annotation)) for key, field in fields.items()]
    return tuple(made)


def _is_known(key: str) -> bool:
    return any(column.name == f"cell.{key}" for column in CELL_COLUMNS)


def _is_counted(column: Column) -> bool:
    return EXAMPLES.throughput_key in column.name or EXAMPLES.cpu_key in column.name


def _counted(column: Column, quantity: Quantity) -> Column:
    def read(item: Any) -> Any:
        return column.of(item) if _cell(column, item).work.quantity == quantity else None

    return replace(column, name=quantity.worded(column.name), unit=quantity.worded(column.unit), read=read)


def _cell(column: Column, item: Any) -> Cell:
    """The cell that a figure is of: a trial's, a summary's, or that of one side of a comparison."""
    side = column.name[0] if column.name.startswith(("a_", "b_")) else ""
    places = (f"{side}.cell",) if side else ("trials.cell", "cell")
    found: Cell = next(cell for place in places if isinstance(cell := value_at(item, place), Cell))
    return found


def _of_key(column: Column, key: str, kind: ColumnKind) -> Column:
    """The column of a key that trainings do not have, beside theirs."""
    place = column.read if isinstance(column.read, str) and column.read else column.name
    return Column(column.name.replace(_LAST_KEY, key), kind, "", "see the kind of work", place.replace(_LAST_KEY, key))
