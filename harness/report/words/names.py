"""Names of cells for other tools, which join today's figures with yesterday's by name."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.spec.axes import TABLE
from harness.spec.work import Cell

NAMED_WHEN_SEVERAL = tuple(key for key, axis in TABLE.items() if axis.named)
"""Keys that are in a benchmark's name only where there are several values of them."""


def names_of(cells: Sequence[Cell]) -> list[str]:
    """A name each, such as `mirrored-2x64-hierarchical_copy`; the same cell keeps its name between runs of a spec.

    No two of the cells share one: where names of models or data run into one another, the cells' ids tell them apart.
    """
    varying = [key for key in NAMED_WHEN_SEVERAL if len({_value(cell, key) for cell in cells}) > 1]
    return told_apart([_name(cell, varying) for cell in cells], cells)


def told_apart(names: Sequence[str], cells: Sequence[Cell]) -> list[str]:
    """The name of each cell, with the cell's id behind one that several have."""
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name}-{cell.cell_id}" for name, cell in zip(names, cells, strict=True)]


def _name(cell: Cell, varying: Sequence[str]) -> str:
    beside = [f"{key}={value}".lower() for key in varying if (value := _value(cell, key)) is not None]
    return "-".join([cell.short_name, *beside]).replace(":", ".")


def _value(cell: Cell, key: str) -> Any:
    return cell.subject if key == "model" else cell.get(key)


def slug(text: str) -> str:
    """`text` as a part of a path or a dotted name: letters, digits, `_`, `=` and `-` only."""
    return re.sub(r"-+", "-", re.sub(r"[^\w=-]+", "-", text.replace("×", "x"))).strip("-")
