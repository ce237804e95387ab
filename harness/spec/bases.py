"""Which of given cells a cell is compared with first (`Cell.base`)."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from harness.spec.axes import ENGINE
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell
from harness.spec.grouping import THREADS, apart
from harness.spec.work import Cell

BasesOf = Callable[[Cell], tuple[str, ...]]
LOOP = ("loop",)


def _but_for_threads(base: Cell) -> tuple[object, ...]:
    """Of TensorFlow; of other engines a base case is one program whatever its loop."""
    return apart(base, THREADS) if base.get("engine") == ENGINE else _but_for_loop_and_threads(base)


def _but_for_loop_and_threads(cell: Cell) -> tuple[object, ...]:
    return apart(cell, (*LOOP, *THREADS))


def under_one_loop(
    cells: Iterable[tuple[Cell, Catalogue]],
    alike: Callable[[Cell], object] = _but_for_loop_and_threads,
    left_out: Callable[[Cell, Catalogue], bool] = lambda *_: False,
) -> dict[Cell, Cell]:
    """By each cell, given with its engine's names, what is measured for it: itself, but where loops make no difference
    (`StrategyTraits.one_loop`) the same under one loop of those that are `alike`: of the first under which the fewest
    of them are `left_out`, for those that are not. Else the luckiest of them would be the base."""
    measured = {}
    groups: dict[object, list[tuple[Cell, Catalogue]]] = {}
    for cell, catalogue in cells:
        measured[cell] = cell
        traits = catalogue.strategies.get(str(cell.get("strategy")))
        if traits is not None and traits.one_loop and cell.get("loop") is not None:
            groups.setdefault((*catalogue.loops, alike(cell)), []).append((cell, catalogue))
    for group in groups.values():
        out: dict[Any, set[Cell]] = {cell.get("loop"): set() for cell, _ in group}
        for loop, (cell, catalogue) in itertools.product(out, group):
            if left_out(_under(loop, cell), catalogue):
                out[loop].add(cell)
        loops = sorted(out, key=lambda loop: len(out[loop]))
        for cell, _ in group:
            loop = next((loop for loop in loops if cell not in out[loop]), loops[0])
            measured[cell] = _under(loop, cell)
    return measured


def _under(loop: object, cell: Cell) -> Cell:
    return cell.model_copy(update={"loop": loop})


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
            alike = _but_for_threads(other)
            widest[alike] = max(other, widest.get(alike, other), key=lambda base: base.intra_op_threads)

    def of(cell: Cell) -> tuple[str, ...]:
        base = base_of(cell)
        found = (base,) if base == cell else (base, widest.get(_but_for_threads(base), base))
        return tuple(dict.fromkeys(one.cell_id for one in found if one.cell_id in ids))

    return of
