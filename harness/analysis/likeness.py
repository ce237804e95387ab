"""In what cells of several engines are not like with like beside their speed, by the records of what they ran."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.analysis.cells import CellTrials
from harness.record.trial import BATCH_NORMALISATION, OVER_GLOBAL_BATCH
from harness.spec.axes import ENGINE, SYNTHETIC


class Alike(NamedTuple):
    """Engines that the records of a run show something of, and whether it is the same of all of them."""

    engines: Sequence[str]
    everywhere: bool


def engine_that_ran(cell: CellTrials) -> str:
    """What trained a cell; of a training step of the user's own, whose cell has no engine, as its record says."""
    return str(cell.cell.get("engine") or cell.executed.engine or ENGINE)


def first_weights(cells: Iterable[CellTrials]) -> Alike | None:
    """Of the weights that they began with; None where the records show nothing."""
    return _alike((engine_that_ran(cell), "", cell.executed.initial_weights) for cell in cells)


def batches_in_order(cells: Iterable[CellTrials]) -> Alike | None:
    """Of the first batches of as many processes, as large ones; None where the records show nothing."""
    return _alike(
        (engine_that_ran(cell), (cell.cell.shape.workers, cell.cell.work.amount), " ".join(cell.executed.labels))
        for cell in cells
    )


def not_like_with_like(cells: Sequence[CellTrials]) -> str:
    """That engines which compile, compute, begin or are fed otherwise are held against each other; empty where they do
    not."""
    ran = [cell.executed for cell in cells]
    is_unlike = {
        "compiler": len({one.unlike.get("compiler", "") for one in ran}) > 1,
        "arithmetic": len({one.arithmetic for one in ran}) > 1,
        "batch normalisation": _normalised_in_two_ways(cells),
        "initialisation": (found := first_weights(cells)) is not None and not found.everywhere,
        "order of data": _fed_in_two_orders(cells),
    }
    differ = [name for name, differs in is_unlike.items() if differs]
    told = " and ".join(filter(None, (", ".join(differ[:-1]), *differ[-1:])))
    return f"Not like with like: {told} differ{'s' if len(differ) == 1 else ''}." if differ else ""


def not_told_of_engines(what: str, on_processors: bool) -> str:
    """What a ranking, or a comparison, of several engines does not say; `on_processors`: all of it ran on these."""
    return (
        f"The {what} is of this model, batch and machine: it does not tell how the engines compare on another model or "
        f"on {'accelerators' if on_processors else 'other devices'}, nor how mature or convenient they are."
    )


def otherwise_words(told: Mapping[str, str]) -> str:
    """`compiler none; layout channels first`: what an engine does otherwise by subject, as `Executed.unlike` has it."""
    named = ((subject.replace("_", " "), words) for subject, words in told.items())
    return "; ".join(words if words.startswith(name) else f"{name} {words}" for name, words in named)


def _fed_in_two_orders(cells: Sequence[CellTrials]) -> bool:
    """Whether engines read examples in another order: by what their records show, or where two have no number of
    processes in common, since each process shuffles its own."""
    if (found := batches_in_order(cells)) is not None:
        return not found.everywhere
    workers: dict[str, set[int]] = {}
    for cell in cells:
        if cell.executed.labels and cell.cell.data_set != SYNTHETIC:
            workers.setdefault(engine_that_ran(cell), set()).add(cell.cell.shape.workers)
    return any(one.isdisjoint(other) for one, other in itertools.combinations(workers.values(), 2))


def _normalised_in_two_ways(cells: Iterable[CellTrials]) -> bool:
    """Whether of cells of several replicas some have statistics over the global batch, and others each its own."""
    several = [cell for cell in cells if cell.cell.replicas_in_sync > 1]
    return len({OVER_GLOBAL_BATCH in cell.executed.unlike.get(BATCH_NORMALISATION, "") for cell in several}) > 1


def _alike(found: Iterable[tuple[str, object, str]]) -> Alike | None:
    """What digests show of the engines that have one of the same thing; of (engine, thing, digest or nothing)."""
    digests: dict[object, dict[str, set[str]]] = {}
    for engine, thing, digest in found:
        if digest:
            digests.setdefault(thing, {}).setdefault(digest, set()).add(engine)
    several = [by for by in digests.values() if len(set().union(*by.values())) > 1]
    if not several:
        return None
    names = sorted(set().union(*(engines for by in several for engines in by.values())))
    return Alike(names, all(len(by) == 1 for by in several))
