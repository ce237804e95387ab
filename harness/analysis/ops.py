"""Cross-device ops side by side: the same strategy, replicas and batch, only op and packing differ."""

import functools
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.cells import CellTrials
from harness.analysis.estimates.intervals import Interval, LogEstimate
from harness.analysis.estimates.layout import Layout
from harness.analysis.estimates.verdict import Judgement, Margins, judge_all
from harness.spec.axes import TABLE
from harness.spec.cell import TrainingCell, trained
from harness.spec.grouping import SIDE_BY_SIDE, apart
from harness.spec.naming import sayings

OP = "cross_device_op"


@dataclass(frozen=True)
class OpResult:
    """One op, with its packing and whatever else is set side by side, within a group."""

    cell: TrainingCell
    estimate: LogEstimate | None
    """ln X/X_reference; None for the reference and for a cell that was not measured."""

    @property
    def cell_id(self) -> str:
        """The cell's identity."""
        return self.cell.cell_id

    @property
    def op(self) -> str:
        """The op that was asked for."""
        return self.cell.cross_device_op

    @property
    def name(self) -> str:
        """The op with its packing, where it has one."""
        without = {OP, *(key for key in TABLE if key not in SIDE_BY_SIDE)}
        return ", ".join([self.op, *sayings(self.cell, without)])

    @functools.cached_property
    def relative(self) -> Interval | None:
        """X/X_reference, an ordinary 95 % interval; None where there is no estimate."""
        return None if self.estimate is None else self.estimate.interval()


@dataclass(frozen=True)
class OpGroup:
    """Cells that differ only in what is set side by side: cross-device op and packing."""

    label: str
    """A short name of what is held fixed."""
    reference_id: str | None
    """TensorFlow's own default (`auto`) if it is ok, else the fastest; an unproved one only where none is ok; None when
    none was measured."""
    results: tuple[OpResult, ...]


def op_groups(cells: Sequence[CellTrials], layout: Layout) -> tuple[OpGroup, ...]:
    """Every group of two or more ops; failed ones are listed too, without a number."""
    grouped: defaultdict[tuple[object, ...], list[CellTrials]] = defaultdict(list)
    for cell in cells:
        if isinstance(cell.cell, TrainingCell) and cell.cell.replicas_in_sync > 1:
            grouped[apart(cell.cell, SIDE_BY_SIDE)].append(cell)
    return tuple(_group(members, layout) for members in grouped.values() if len(members) > 1)


def judge_ops(groups: Sequence[OpGroup], margins: Margins) -> Mapping[str, Judgement]:
    """The verdict on each op that was compared with its reference, by cell id: those of all groups judged together.

    Benjamini–Hochberg over them, as `compare --along cross_device_op` does: one of twenty that are alike would
    otherwise be called faster or slower.
    """
    compared = {item.cell_id: item.estimate for group in groups for item in group.results if item.estimate is not None}
    return dict(zip(compared, judge_all(list(compared.values()), margins, "fdr"), strict=True))


def axes_of(groups: Sequence[OpGroup]) -> tuple[str, ...]:
    """Along which axes cells of a group differ in nothing else, as `compare --along` takes them."""
    pairs = (pair for group in groups for pair in itertools.combinations(group.results, 2))
    found = {_axis(a, b) for a, b in pairs}
    return tuple(name for key in TABLE if key in SIDE_BY_SIDE for name in (*TABLE[key].kinds, key) if name in found)


def _axis(a: OpResult, b: OpResult) -> str:
    """What two cells differ in; empty where it is several, such as both the op and the packing."""
    key, *more = (key for key in TABLE if key in SIDE_BY_SIDE and a.cell.get(key) != b.cell.get(key))
    if more:
        return ""
    kinds = {str(one.cell.get(key)).partition("=")[0] for one in (a, b)} if TABLE[key].kinds else {key}
    return kinds.pop() if len(kinds) == 1 else key  # packs against no such request


def _group(members: Sequence[CellTrials], layout: Layout) -> OpGroup:
    measured = [cell for cell in members if cell.measured is not None]
    ok = [cell for cell in measured if cell.status == "ok"] or measured
    reference = next((cell for cell in ok if trained(cell.cell).cross_device_op == "auto"), None)
    if reference is None and ok:
        reference = max(ok, key=lambda cell: cell.measured.throughput.value if cell.measured else 0.0)
    return OpGroup(
        label=_label(trained(members[0].cell), members[0].engine_told),
        reference_id=reference.cell_id if reference else None,
        results=tuple(_result(cell, reference, layout) for cell in members),
    )


def _label(of: TrainingCell, engine: str) -> str:
    workers = f"{of.workers} workers × " if of.workers > 1 else ""
    fixed = f"{of.strategy}, {workers}{of.replicas} replicas, batch {of.batch_size}"
    return ", ".join(filter(None, [fixed, *sayings(of, without=SIDE_BY_SIDE), engine]))


def _result(cell: CellTrials, reference: CellTrials | None, layout: Layout) -> OpResult:
    ratio = None
    if cell.measured and reference and reference.measured and cell.cell_id != reference.cell_id:
        ratio = layout.ratio(cell.cell_id, reference.cell_id)
    return OpResult(trained(cell.cell), ratio)
