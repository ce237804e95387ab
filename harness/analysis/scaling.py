"""Speed-up and efficiency of a cell against its two base cases.

With X the throughput, n replicas, and a base at n0 replicas (`docs/protocol.md#scaling`):

- weak scaling (per-replica batch fixed) and strong scaling (global batch fixed) alike:
  S(n) = X(n)/X(n0) and E(n) = S(n)·n0/n;
- on a mesh whose `model` axis cuts the model, a replica has several devices: n then counts devices;
- resource-bounded: E_r(n) = S(n)·min(n0, physical)/min(n, physical), where `physical` is the number of
  processors that the replicas have between them, on all hosts of a cluster, of cell and base each its own.
  When replicas share, n is not that number, and only E_r says what the strategy costs.

All three are one log ratio times a known constant, so one interval (of the difference of logs, paired
where both sides took turns) serves them all. It is never made from two cells' own intervals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.cells import CellTrials, Measured
from harness.analysis.estimates.intervals import Interval, LogEstimate, compare
from harness.spec.bases import base_among
from harness.spec.cell import TrainingCell
from harness.spec.grouping import lies_in_family_on_curve
from harness.spec.work import Cell

BaseKind = Literal["no_strategy", "own"]
SHARED_LABEL = "shared devices: overhead only, not hardware scaling"


@dataclass(frozen=True)
class Scaling:
    """A cell relative to one base case."""

    kind: BaseKind
    cell_id: str
    base_id: str
    n: int
    n0: int
    log_ratio: LogEstimate
    """ln X(n)/X(n0)."""
    speed_up: Interval
    efficiency: Interval
    resource_efficiency: Interval
    ideal: float
    """n/n0: the speed-up of perfect scaling."""
    bound: float
    """min(n, physical)/min(n0, physical), each side's own: the most that the processors allow."""
    shared: bool
    """The efficiency then shows overhead, not hardware scaling (SHARED_LABEL)."""


def relate(cell: CellTrials, base: CellTrials, kind: BaseKind, references: Iterable[Measured] = ()) -> Scaling | None:
    """The cell against the base; None when either has no measurement or both are the same cell."""
    if cell.measured is None or base.measured is None or cell.cell_id == base.cell_id:
        return None
    n, n0 = cell.cell.devices_in_sync, base.cell.devices_in_sync
    ratio = compare(cell.measured.sample, base.measured.sample, (item.sample for item in references))
    speed_up = ratio.interval()
    # Each has its own: a cluster has those of more hosts than its base.
    bound = min(n, cell.physical_devices) / min(n0, base.physical_devices)
    return Scaling(
        kind=kind,
        cell_id=cell.cell_id,
        base_id=base.cell_id,
        n=n,
        n0=n0,
        log_ratio=ratio,
        speed_up=speed_up,
        efficiency=speed_up.scaled(n0 / n),
        resource_efficiency=speed_up.scaled(1 / bound),
        ideal=n / n0,
        bound=bound,
        shared=cell.shared,
    )


def no_strategy_bases(cells: Sequence[CellTrials]) -> dict[str, CellTrials]:
    """By cell id the base *no strategy, one device* at the same batch, of cells of which it was measured and is ok."""
    by_id, base_of = {cell.cell_id: cell for cell in cells}, base_among(cell.cell for cell in cells)
    bases = {cell.cell_id: by_id.get(base_of(cell.cell).cell_id) for cell in cells}
    return {cell_id: base for cell_id, base in bases.items() if base is not None and base.measured is not None}


def own_base(cell: Cell, family: Iterable[CellTrials]) -> CellTrials | None:
    """The base *the strategy itself at its smallest replica count* among the ok cells of its family.

    Everything else is the same, with one exception: one replica has nothing to reduce, so the cell
    at one replica (op `auto`, default packing) is the base of every op and packing. Where workers × replicas
    give the smallest count in several ways, the base is the one with as many replicas a worker as the cell.
    """
    if not isinstance(cell, TrainingCell):
        return None
    candidates = [other for other in family if other.measured is not None and lies_in_family_on_curve(other.cell, cell)]

    def smallest(other: CellTrials) -> tuple[int, bool, int]:
        shape = other.cell.shape
        return other.cell.devices_in_sync, shape.replicas != cell.replicas, shape.workers

    return min(candidates, key=smallest, default=None)


def both_bases(
    cell: CellTrials, none: CellTrials | None, family: Iterable[CellTrials], references: Sequence[Measured]
) -> tuple[Scaling | None, Scaling | None]:
    """(against `none`, its base without a strategy, and against the strategy's own smallest replica count)."""
    own = own_base(cell.cell, family)
    return (
        relate(cell, none, "no_strategy", references) if none and none.cell.competes else None,
        relate(cell, own, "own", references) if own else None,
    )
