"""Which of given cells a cell is compared with first (`Cell.base`)."""

from collections.abc import Callable, Iterable

from harness.spec.cell import TrainingCell
from harness.spec.grouping import THREADS, apart
from harness.spec.work import Cell

BasesOf = Callable[[Cell], tuple[str, ...]]


def known_bases(cells: Iterable[Cell]) -> BasesOf:
    """Of a cell the ids of its base cases among `cells`: `Cell.base`, and the same with the most threads there."""
    ids: set[str] = set()
    widest: dict[tuple[object, ...], TrainingCell] = {}
    for other in cells:
        ids.add(other.cell_id)
        if isinstance(other, TrainingCell) and other.is_base:
            alike = apart(other, THREADS)
            widest[alike] = max(other, widest.get(alike, other), key=lambda base: base.intra_op_threads)

    def of(cell: Cell) -> tuple[str, ...]:
        base = cell.base
        found = (base,) if base == cell else (base, widest.get(apart(base, THREADS), base))
        return tuple(dict.fromkeys(one.cell_id for one in found if one.cell_id in ids))

    return of
