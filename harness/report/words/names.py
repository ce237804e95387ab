"""Names of cells for other tools, which join today's figures with yesterday's by name."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.spec.axes import TABLE, Axes
from harness.spec.sweep import Sweep
from harness.spec.work import Cell

NAMED_WHERE_OTHER = {
    key: Sweep().asked(key)[0] if Axes.model_fields[key].is_required() else Axes.model_fields[key].default
    for key, axis in TABLE.items()
    if axis.named
}
"""Keys that are in a benchmark's name where they have another value than this, that of a cell of the default sweep."""


def names_of(cells: Sequence[Cell]) -> list[str]:
    """A name each, such as `mirrored-2x64-hierarchical_copy`: the same one whatever is measured beside the cell.

    No two of the cells share one: where names of models or data run into one another, the cells' ids tell them apart.
    """
    return told_apart([_name(cell) for cell in cells], cells)


def told_apart(names: Sequence[str], cells: Sequence[Cell]) -> list[str]:
    """The name of each cell, with the cell's id behind one that several have."""
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name}-{cell.cell_id}" for name, cell in zip(names, cells, strict=True)]


def _name(cell: Cell) -> str:
    beside = [
        f"{key}={value}".lower()
        for key, usual in NAMED_WHERE_OTHER.items()
        if (value := _value(cell, key)) not in (None, usual)
    ]
    return "-".join([cell.short_name, *beside]).replace(":", ".")


def _value(cell: Cell, key: str) -> Any:
    """None of what the name begins with."""
    if key == "model":
        return None if cell.short_name.startswith(cell.subject) else cell.subject
    return cell.get(key)


def slug(text: str) -> str:
    """`text` as a part of a path or a dotted name: letters, digits, `_`, `=` and `-` only."""
    return re.sub(r"-+", "-", re.sub(r"[^\w=-]+", "-", text.replace("×", "x"))).strip("-")
