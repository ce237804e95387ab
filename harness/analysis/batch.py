"""Throughput against batch size, and the knee: the batch beyond which nothing more is gained.

`docs/figures.md#batch-size` says what the knee is, and when there is none.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.cells import CellTrials, Measured
from harness.analysis.estimates.intervals import Interval, compare
from harness.analysis.estimates.verdict import EPSILON
from harness.spec.cell import TrainingCell, trained
from harness.spec.naming import sayings

KneeFound = Literal["found", "rising", "undecided", "not_judged"]


@dataclass(frozen=True)
class BatchPoint:
    """One batch size of a curve."""

    cell: CellTrials
    batch_size: int
    gain: Interval | None
    """X over that of the batch before; None for the smallest."""


@dataclass(frozen=True)
class BatchCurve:
    """Cells that differ only in batch size, the smallest first."""

    label: str
    points: tuple[BatchPoint, ...]
    knee: int | None
    found: KneeFound
    beyond: tuple[CellTrials, ...] = ()
    """Cells at larger batches that were tried and have no throughput, the smallest first."""


def batch_curves(
    cells: Sequence[CellTrials], references: Sequence[Measured], judged: bool = True
) -> tuple[BatchCurve, ...]:
    """Every curve of at least two batch sizes among the ok cells of one workload, in the cells' order.

    Unless `judged`, which a sweep is once it has finished, no knee is looked for.
    """
    grouped, failed = _grouped(cells, lambda cell: cell.measured is not None), _grouped(cells, _tried_in_vain)
    return tuple(
        _curve(members, failed.get(key, []), references, judged) for key, members in grouped.items() if len(members) > 1
    )


def _grouped(
    cells: Sequence[CellTrials], wanted: Callable[[CellTrials], bool]
) -> dict[tuple[object, ...], list[CellTrials]]:
    """Those that are wanted, by all that they have in common but the batch; of each the smallest batch first."""
    grouped: defaultdict[tuple[object, ...], list[CellTrials]] = defaultdict(list)
    for cell in cells:
        if isinstance(cell.cell, TrainingCell) and wanted(cell):
            grouped[_key(cell)].append(cell)
    return {key: sorted(members, key=_batch_size) for key, members in grouped.items()}


def _tried_in_vain(cell: CellTrials) -> bool:
    return cell.measured is None and cell.status not in ("missing", "interrupted")


def _batch_size(cell: CellTrials) -> int:
    return trained(cell.cell).batch_size


def _key(cell: CellTrials) -> tuple[object, ...]:
    return tuple(cell.cell.model_dump(exclude={"batch_size", "global_batch_size"}).values())


def _curve(
    cells: Sequence[CellTrials], failed: Sequence[CellTrials], references: Sequence[Measured], judged: bool
) -> BatchCurve:
    points = tuple(
        BatchPoint(cell, _batch_size(cell), _ratio(cell, cells[place - 1], references) if place else None)
        for place, cell in enumerate(cells)
    )
    of = trained(cells[0].cell)
    label = " ".join(filter(None, [of.deployment, *sayings(of), cells[0].engine_told]))
    beyond = tuple(cell for cell in failed if _batch_size(cell) > points[-1].batch_size)
    if not judged:
        return BatchCurve(label, points, None, "not_judged", beyond)
    knee = _knee(cells, references)
    if knee is not None:
        return BatchCurve(label, points, knee, "found", beyond)
    last = points[-1].gain
    rising = last is not None and last.low is not None and last.low > 1 + EPSILON
    return BatchCurve(label, points, None, "rising" if rising else "undecided", beyond)


def _knee(cells: Sequence[CellTrials], references: Sequence[Measured]) -> int | None:
    for place, cell in enumerate(cells[:-1]):
        highs = (_ratio(larger, cell, references).high for larger in cells[place + 1 :])
        if all(high is not None and high <= 1 + EPSILON for high in highs):
            return _batch_size(cell)
    return None


def _ratio(cell: CellTrials, base: CellTrials, references: Sequence[Measured]) -> Interval:
    assert cell.measured is not None
    assert base.measured is not None
    return compare(cell.measured.sample, base.measured.sample, (item.sample for item in references)).interval()
