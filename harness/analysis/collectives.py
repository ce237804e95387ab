"""Bandwidth of collectives, as nccl-tests defines it in its doc/PERFORMANCE.md.

With S the bytes of the buffer (of an all-gather what each replica receives, of a reduce-scatter what each sends), t the
time of one collective and n the replicas:

- algorithm bandwidth: algbw = S / t, which is the throughput of the cell;
- bus bandwidth: busbw = algbw × 2(n−1)/n of an all-reduce, × (n−1)/n of a reduce-scatter or an all-gather, × 1 of a
  broadcast: what goes over the slowest link by the best algorithm, so that it can be set beside the link's own speed
  whatever n is.

Both are the measured time and constants, so they have its interval. https://github.com/NVIDIA/nccl-tests
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.analysis.estimates.intervals import Interval
from harness.analysis.latency import LatencyBandwidth, fit
from harness.analysis.summary import CellSummary, RunSummary, WorkloadSummary
from harness.spec.collective import CollectiveCell


def bus_factor(collective: str, n: int) -> float:
    """busbw ÷ algbw of n replicas."""
    share = (n - 1) / n
    return {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "broadcast": 1.0}[collective]


@dataclass(frozen=True)
class CollectiveFigures:
    """What was measured of one collective. The figures are None together, where it was not or was found wrong."""

    cell: CollectiveCell
    summary: CellSummary
    time_s: Interval | None
    algbw: Interval | None
    """Bytes a second."""
    busbw: Interval | None
    """Bytes a second."""

    @property
    def times_s(self) -> dict[int, float]:
        """Seconds of one collective, by block."""
        measured = self.summary.measured
        if measured is None:
            return {}
        sample = measured.sample
        return {block: self.cell.size / math.exp(x) for block, x in zip(sample.blocks, sample.values, strict=True)}


@dataclass(frozen=True)
class OpCurve:
    """What was measured of one op and packing over the sizes, the smallest first."""

    name: str
    figures: tuple[CollectiveFigures, ...]

    @property
    def line(self) -> LatencyBandwidth | None:
        """t = α + S/β; None of too few sizes."""
        return fit({one.cell.size: one.times_s for one in self.figures})


@dataclass(frozen=True)
class CollectiveGroup:
    """One collective between the same replicas, in every size and by every op, ordered by size."""

    collective: str
    between: str
    """Who takes part, and over what."""
    n: int
    """Replicas of all workers."""
    device: str
    figures: tuple[CollectiveFigures, ...]

    @property
    def shares_memory(self) -> bool:
        """Whether all replicas are of one process on the processor."""
        return self.device == "virtual-cpu" and all(one.cell.strategy == "mirrored" for one in self.figures)

    @property
    def curves(self) -> tuple[OpCurve, ...]:
        """Of each op, without the sizes that were not measured or were found wrong."""
        by_op: defaultdict[str, list[CollectiveFigures]] = defaultdict(list)
        for figures in self.figures:
            if figures.summary.measured is not None:
                by_op[figures.cell.op_words].append(figures)
        return tuple(OpCurve(name, tuple(found)) for name, found in by_op.items())


def collective_groups(summary: RunSummary) -> tuple[CollectiveGroup, ...]:
    """The collectives of a run, in the order of its cells; nothing of a run that has none."""
    grouped: defaultdict[tuple[str, str, int, str], list[CollectiveFigures]] = defaultdict(list)
    for figures in _figures(summary.cells):
        cell = figures.cell
        grouped[cell.collective, cell.between, cell.replicas_in_sync, cell.device].append(figures)
    return tuple(CollectiveGroup(*key, tuple(sorted(found, key=_size))) for key, found in grouped.items())


def _figures(cells: Iterable[CellSummary]) -> Iterable[CollectiveFigures]:
    for summary in cells:
        cell, measured = summary.trials.cell, summary.measured
        if not isinstance(cell, CollectiveCell):
            continue
        if measured is None:
            yield CollectiveFigures(cell, summary, None, None, None)
            continue
        busbw = measured.throughput.scaled(bus_factor(cell.collective, cell.replicas_in_sync))
        yield CollectiveFigures(cell, summary, measured.step_time_s, measured.throughput, busbw)


def _size(figures: CollectiveFigures) -> int:
    return figures.cell.size


def of_collectives(work: WorkloadSummary) -> bool:
    """Whether a ranking is of collectives, which are told with those of the other sizes."""
    return any(isinstance(cell.trials.cell, CollectiveCell) for cell in work.cells)
