"""Bandwidth of collectives: algbw and busbw, as `docs/protocol.md#collectives` defines them."""

import functools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from harness.analysis.estimates.intervals import Interval
from harness.analysis.latency import LatencyBandwidth, fit
from harness.analysis.summary import CellSummary, RunSummary, WorkloadSummary
from harness.record.trial import CALL
from harness.spec.axes import ENGINE
from harness.spec.collective import CollectiveCell
from harness.spec.grouping import apart


def bus_factor(collective: str, n: int) -> float:
    """busbw ÷ algbw of n replicas: of an all-reduce 2(n−1)/n, of an all-gather and a reduce-scatter (n−1)/n, of a
    broadcast 1, as doc/PERFORMANCE.md of nccl-tests has them."""
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
    """What was measured over the sizes, the smallest first, of cells that differ in nothing else."""

    name: str
    figures: tuple[CollectiveFigures, ...]

    @functools.cached_property
    def line(self) -> LatencyBandwidth | None:
        """t = α + S/β, in pieces where one line does not hold; None of too few sizes."""
        return fit({one.cell.size: one.times_s for one in self.figures})

    @property
    def unfitted(self) -> tuple[int, ...]:
        """Sizes that have a time in too few blocks to be on the line."""
        line = self.line
        return () if line is None else tuple(one.cell.size for one in self.figures if one.cell.size not in line.sizes)


@dataclass(frozen=True)
class CollectiveGroup:
    """One collective between the same replicas, in every size and by every alternative, ordered by size."""

    collective: str
    between: str
    """Who takes part, and over what."""
    figures: tuple[CollectiveFigures, ...]

    @property
    def shares_memory(self) -> bool:
        """Whether replicas of TensorFlow's are all of one process on the processor."""
        of_one = (one for one in self.figures if one.cell.shape.workers == 1)
        return any(one.summary.trials.device.on_processors and one.cell.get("engine") == ENGINE for one in of_one)

    @property
    def curves(self) -> tuple[OpCurve, ...]:
        """Of each alternative, without the sizes that were not measured or were found wrong. A model's gradients are
        many tensors, so they are on no line of buffers that are one."""
        measured = (one for one in self.figures if one.summary.measured is not None and not one.cell.gradients)
        joined = _grouped(measured, {"size"})
        return tuple(OpCurve(self.name_of(found[0].cell), found) for found in joined)

    def name_of(self, cell: CollectiveCell) -> str:
        """What sets a cell apart from the others of its size: the op, and the strategy where there are several."""
        several = len({one.cell.strategy for one in self.figures}) > 1
        return f"{cell.strategy} {cell.op_words}" if several else cell.op_words


def collective_groups(summary: RunSummary) -> tuple[CollectiveGroup, ...]:
    """The collectives of a run, in the order of its cells; nothing of a run that has none."""
    grouped = _grouped(_figures(summary.cells), {"size", "gradients", *CollectiveCell.ALTERNATIVES})
    of = ((found[0].cell, tuple(sorted(found, key=_size))) for found in grouped)
    return tuple(CollectiveGroup(cell.collective, cell.between, found) for cell, found in of)


def _grouped(figures: Iterable[CollectiveFigures], few: Collection[str]) -> list[tuple[CollectiveFigures, ...]]:
    """Those together whose cells differ in nothing but the keys in `few`."""
    grouped: defaultdict[tuple[object, ...], list[CollectiveFigures]] = defaultdict(list)
    for one in figures:
        grouped[apart(one.cell, few)].append(one)
    return [tuple(found) for found in grouped.values()]


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


def calls_of(group: CollectiveGroup) -> dict[str, str]:
    """What the time of a group's collectives is that of, by engine: the words of its record, empty where that says
    nothing."""
    found: dict[str, str] = {}
    for one in group.figures:
        engine, words = str(one.cell.get("engine")), one.summary.trials.executed.unlike.get(CALL, "")
        found[engine] = found.get(engine) or words
    return found
