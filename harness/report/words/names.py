"""Names of cells for other tools, which join today's figures with yesterday's by name."""

import re
from collections import Counter
from collections.abc import Sequence

from harness.spec.cell import Cell

NAMED_WHEN_SEVERAL = (
    "device", "workers", "batch_scope", "model", "data", "precision", "xla", "optimizer", "loop", "ps", "partitioner",
    "updates", "network", "mesh",
)  # fmt: skip
"""Keys that are in a benchmark's name only where there are several values of them."""
IN_LABEL = {
    "strategy", "replicas", "workers", "batch_size", "batch_scope", "global_batch_size", "cross_device_op", "packing",
    "loop", "ps", "partitioner", "updates", "model", "data", "device",
}  # fmt: skip
"""Keys that `series_name` says in its own way; of the others those that are not at their default are spelled out."""


def names_of(cells: Sequence[Cell]) -> list[str]:
    """A name each, such as `mirrored-2x64-hierarchical_copy`; the same cell keeps its name between runs of a spec.

    No two of the cells share one: where names of models or data run into one another, the cells' ids tell them apart.
    """
    varying = [key for key in NAMED_WHEN_SEVERAL if len({getattr(cell, key) for cell in cells}) > 1]
    names = [_name(cell, varying) for cell in cells]
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name}-{cell.cell_id}" for name, cell in zip(names, cells, strict=True)]


def _name(cell: Cell, varying: Sequence[str]) -> str:
    parts = [cell.strategy, f"{cell.replicas}x{cell.batch_size}"]
    parts += [part for part in (cell.cross_device_op, cell.packing) if part not in ("auto", "default")]
    parts += [f"{key}={getattr(cell, key)}".lower() for key in varying]
    return "-".join(parts).replace(":", ".")


def series_name(cell: Cell) -> str:
    """One line that is the same for a cell in every run, whatever is measured beside it; no two cells share one."""
    fields = Cell.model_fields.items()
    rest = [
        f"{key}={getattr(cell, key)}".lower()
        for key, field in fields
        if key not in IN_LABEL and getattr(cell, key) != field.default
    ]
    batch = [f"batch={cell.batch_size}"] if cell.loop == "own" else []
    many = [f"replicas={cell.replicas}"] if cell.ps and cell.replicas > 1 else []  # a label with servers counts workers
    return " ".join([f"{cell.model} on {cell.data}, {cell.device}:", cell.label, *many, *rest, *batch])


def slug(text: str) -> str:
    """`text` as a part of a path or a dotted name: letters, digits, `_`, `=` and `-` only."""
    return re.sub(r"-+", "-", re.sub(r"[^\w=-]+", "-", text.replace("×", "x"))).strip("-")
