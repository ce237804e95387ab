"""What a cell is compared with first: no strategy of a training, what the model takes of an input pipeline."""

from collections.abc import Callable, Iterable

from harness.spec.axes import TABLE
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell
from harness.spec.entry import KEEP
from harness.spec.grouping import THREADS, apart
from harness.spec.pipeline import PipelineCell
from harness.spec.work import Cell

BASE = {key: axis.base for key, axis in TABLE.items() if axis.base is not KEEP}
"""What a base case has, whatever the cell."""


def training_base_of(cell: TrainingCell) -> TrainingCell:
    """The base case *no strategy, one device* at the same batch: b for weak scaling, G for strong."""
    return cell.model_copy(update={**BASE, "global_batch_size": cell.batch_size})


def base_of(cell: Cell) -> Cell:
    """The cell that `cell` is compared with first: `training_base_of` of a training, what the model takes of a
    pipeline, of other work the cell itself."""
    match cell:
        case TrainingCell():
            return training_base_of(cell)
        case PipelineCell():
            return cell.appetite
    return cell


def training_bases_of(cell: TrainingCell, catalogue: Catalogue) -> tuple[TrainingCell, ...]:
    """*No strategy, one device*, then *no strategy on the whole machine* where `cell` distributes over less than that.

    What anybody would run instead of virtual replicas is one process with all of their cores.
    """
    base, cores = training_base_of(cell), catalogue.devices[cell.device].cores or 1
    if cell.devices_in_sync == 1 or max(1, base.intra_op_threads) >= cores:
        return (base,)
    return base, base.model_copy(update={"intra_op_threads": cores})


def bases_of(cell: Cell, catalogue: Catalogue) -> tuple[Cell, ...]:
    """`training_bases_of` of a training, of other work `base_of`."""
    return training_bases_of(cell, catalogue) if isinstance(cell, TrainingCell) else (base_of(cell),)


BasesOf = Callable[[Cell], tuple[str, ...]]


def known_bases(cells: Iterable[Cell]) -> BasesOf:
    """Of a cell the ids of its base cases among `cells`: `base_of`, and the same with the most threads there."""
    ids: set[str] = set()
    widest: dict[tuple[object, ...], TrainingCell] = {}
    for other in cells:
        ids.add(other.cell_id)
        if isinstance(other, TrainingCell) and other.is_base:
            alike = apart(other, THREADS)
            widest[alike] = max(other, widest.get(alike, other), key=lambda base: base.intra_op_threads)

    def of(cell: Cell) -> tuple[str, ...]:
        base = base_of(cell)
        found = (base,) if base == cell else (base, widest.get(apart(base, THREADS), base))
        return tuple(dict.fromkeys(one.cell_id for one in found if one.cell_id in ids))

    return of
