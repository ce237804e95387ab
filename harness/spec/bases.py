"""Which of given cells a cell is compared with first (`Cell.base`)."""

from collections.abc import Callable, Iterable
from typing import Any

from harness.spec.axes import ENGINE
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell
from harness.spec.grouping import THREADS, apart
from harness.spec.work import Cell

BasesOf = Callable[[Cell], tuple[str, ...]]
LOOP = ("loop",)


def under_one_loop(cells: Iterable[tuple[Cell, Catalogue]]) -> dict[Cell, Cell]:
    """By each cell, given with its engine's names, what is measured for it: itself, but where loops make no difference
    (`StrategyTraits.one_loop`) the same under the first loop of those that differ in loop and threads alone. Else the
    luckiest of them would be the base."""
    first: dict[tuple[object, ...], Any] = {}
    measured = {}
    for cell, catalogue in cells:
        traits, loop = catalogue.strategies.get(str(cell.get("strategy"))), cell.get("loop")
        once = traits is not None and traits.one_loop and loop is not None
        under = first.setdefault(apart(cell, (*LOOP, *THREADS)), loop) if once else loop
        measured[cell] = cell if under == loop else cell.model_copy(update={"loop": under})
    return measured


def base_among(cells: Iterable[Cell]) -> Callable[[Cell], Cell]:
    """`Cell.base`, or where that one is not among `cells` the same under the loop that it was measured under. Of
    TensorFlow, whose loops are programs of their own under each strategy, none stands in for another."""
    ids: set[str] = set()
    under_a_loop: dict[tuple[object, ...], Cell] = {}
    for other in cells:
        ids.add(other.cell_id)
        if other.is_base and other.get("engine") != ENGINE:
            under_a_loop.setdefault(apart(other, LOOP), other)

    def of(cell: Cell) -> Cell:
        base = cell.base
        return base if base.cell_id in ids else under_a_loop.get(apart(base, LOOP), base)

    return of


def known_bases(cells: Iterable[Cell]) -> BasesOf:
    """Of a cell the ids of its base cases among `cells`: `base_among`, and the same with the most threads there."""
    there = list(cells)
    ids, base_of = {cell.cell_id for cell in there}, base_among(there)
    widest: dict[tuple[object, ...], TrainingCell] = {}
    for other in there:
        if isinstance(other, TrainingCell) and other.is_base:
            alike = apart(other, THREADS)
            widest[alike] = max(other, widest.get(alike, other), key=lambda base: base.intra_op_threads)

    def of(cell: Cell) -> tuple[str, ...]:
        base = base_of(cell)
        found = (base,) if base == cell else (base, widest.get(apart(base, THREADS), base))
        return tuple(dict.fromkeys(one.cell_id for one in found if one.cell_id in ids))

    return of
