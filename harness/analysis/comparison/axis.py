"""Cells of one run that differ along one axis only."""

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.errors import UsageError, not_one_of
from harness.record import RunManifest
from harness.spec.axes import CELL_KEYS, NO_STRATEGY, TABLE
from harness.spec.catalogue import Catalogue
from harness.spec.grouping import FOLLOWING, apart
from harness.spec.network import NONE
from harness.spec.spelling import SPELT, same
from harness.spec.sweep import OWN_OF_WORK, Sweep
from harness.spec.work import Cell, must_be_of_one_quantity

AXIS_NAMES: tuple[str, ...] = (*TABLE, *CELL_KEYS)
NamesFor = Callable[[Cell, Sweep], Catalogue]
"""The names that the engine of a sweep's cell knows; UsageError where the engine is not here."""


_OF_ENGINES = (
    "cells of different engines differ in loop or strategy as well: the ranking compares them, and "
    "`ab --a engine=… --b engine=…` decides between two"
)


@dataclass(frozen=True)
class Along:
    """What is compared along one axis: each cell at another value with the cell at the base value."""

    axis: str
    base: str
    values: tuple[str, ...]
    """All values that the run has, in the order of its spec."""
    pairs: tuple[tuple[Cell, Cell], ...]
    """(at the base value, at another), equal in all other keys."""
    alone: tuple[Cell, ...]
    """Cells at another value whose partner at the base value the run does not have."""


def along(
    manifest: RunManifest,
    cells: Sequence[Cell],
    axis: str,
    base: str | None = None,
    names_for: NamesFor | None = None,
) -> Along:
    """The pairs along `axis`; UsageError when it is unknown or when nothing differs along it.

    Keys that follow from others are not compared. `num_packs` and `bytes_per_pack` are the two kinds of `packing`; each
    compares cells of its own kind. What is asked for is found among the cells' values by `names_for`, however spelt.
    """
    axis = axis.replace("-", "_")
    if axis in OWN_OF_WORK:
        raise _other_work(manifest, cells, axis)
    if axis not in AXIS_NAMES:
        raise not_one_of("--along", axis, AXIS_NAMES)
    values = _values(manifest, cells, axis, names_for)
    if len(values) < 2:
        there = f"has only one value in this run: {values[0]}" if values else "has no value in this run"
        raise UsageError(f"--along: {axis} {there}; expected an axis along which its cells differ")
    chosen = _usual_base(axis, values) if base is None else _there(manifest, cells, axis, base, names_for)
    if chosen is None:
        raise not_one_of("--base", base or "", values)
    rests = _rests(cells, axis)
    partners = {rests[cell.cell_id]: cell for cell in cells if value_of(cell, axis) == chosen}
    others = [cell for cell in cells if value_of(cell, axis) not in (chosen, None)]
    pairs = [(partners[rest], cell) for cell in others if (rest := rests[cell.cell_id]) in partners]
    if not pairs:
        raise UsageError(
            f"--along: no cell at another {axis} equals one at {axis} {chosen} in all other keys; "
            + (_OF_ENGINES if axis == "engine" else f"--base chooses another of {', '.join(values)}")
        )
    for pair in pairs:
        must_be_of_one_quantity("--along", pair)
    alone = tuple(cell for cell in others if rests[cell.cell_id] not in partners)
    return Along(axis, chosen, values, tuple(pairs), alone)


def _other_work(manifest: RunManifest, cells: Sequence[Cell], key: str) -> UsageError:
    """The error for a key that says which work is done, such as a collective's size."""
    differ = [axis for axis in AXIS_NAMES if len(_values(manifest, cells, axis)) > 1]
    expected = f"expected an axis along which its cells differ: {', '.join(differ)}"
    there = expected if differ else "this run's cells differ in no axis"
    return UsageError(f"--along: another {key} is other work, and not the same in another way; {there}")


def value_of(cell: Cell, axis: str) -> str | None:
    """The cell's value on the axis, as it is written in a spec; None where the axis does not apply."""
    value = cell.get(CELL_KEYS.get(axis, axis))
    if value is None:
        return None
    if axis in CELL_KEYS:
        kind, _, count = value.partition("=")
        return count if kind == axis else None
    return _written(value) or NONE


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(
    manifest: RunManifest, cells: Sequence[Cell], axis: str, names_for: NamesFor | None = None
) -> tuple[str, ...]:
    there = dict.fromkeys(value for cell in cells if (value := value_of(cell, axis)) is not None)
    given = [_written(value) or NONE for value in getattr(manifest.sweep, axis, [])]
    asked = (_there(manifest, cells, axis, text, names_for) for text in given)
    return tuple(dict.fromkeys([*(value for value in asked if value is not None), *there]))


def _there(
    manifest: RunManifest, cells: Sequence[Cell], axis: str, text: str, names_for: NamesFor | None
) -> str | None:
    """The cells' value of the axis that `text` asks for, whatever its spelling; None where no cell has it."""
    by_value = {value: cell for cell in cells if (value := value_of(cell, axis)) is not None}
    if text in by_value:
        return text
    if (found := next((value for value in by_value if value.lower() == text.lower()), None)) is not None:
        return found
    if axis not in SPELT or names_for is None:
        return None
    for value, cell in by_value.items():
        with contextlib.suppress(UsageError):  # an engine that is not here has no other spellings
            if same(axis, value, text, names_for(cell, manifest.sweep)):
                return value
    return None


def _usual_base(axis: str, values: Sequence[str]) -> str:
    usual = TABLE[axis].compared_with if axis in TABLE else ""
    return usual if usual and usual in values else values[0]


def _rests(cells: Sequence[Cell], axis: str) -> dict[str, tuple[object, ...]]:
    """By cell what a partner along the axis has alike.

    A loop's name belongs to an engine, and without a strategy the loop is no other way to distribute: between engines
    it is left out there, unless an engine has several such cells.
    """
    few = {CELL_KEYS.get(axis, axis), *FOLLOWING}
    exact = {cell.cell_id: apart(cell, few) for cell in cells}
    if axis != "engine":
        return exact
    loose = {cell.cell_id: apart(cell, {*few, "loop"}) for cell in cells if cell.get("strategy") == NO_STRATEGY}
    several = Counter((value_of(cell, axis), loose[cell.cell_id]) for cell in cells if cell.cell_id in loose)
    unclear = {rest for (_, rest), count in several.items() if count > 1}
    return exact | {cell_id: ("no loop", *rest) for cell_id, rest in loose.items() if rest not in unclear}
