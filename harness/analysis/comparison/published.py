"""Comparing with published figures: Welch where a table gives an interval and how many trials, else undecided.

A figure and a cell are the same where every key that the table gives is the cell's. No interval is made up: from a
published interval [low, high] of n trials the standard error of ln X is ln(high/low) / (2·t), t the quantile of n − 1
degrees of freedom at the interval's confidence, which is how the harness itself would have printed it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis.cells import CellTrials, Measured
from harness.analysis.comparison.clocks import Verdicts
from harness.analysis.comparison.result import Comparison, Row
from harness.analysis.comparison.sides import Compared, SideCell, side_cells, verdicts_of
from harness.analysis.estimates.intervals import Interval, LogEstimate, Sample, own_estimate, t_quantile, welch
from harness.analysis.estimates.verdict import ALPHA, Correction, Margins
from harness.errors import StorageError
from harness.looks import MOST_BLOCKS
from harness.record import Run
from harness.record.imported import ImportedRecord, PublishedFigure
from harness.record.manifest import DeviceRecord
from harness.record.trial import Executed, Resources
from harness.spec.cell import LATER, TrainingCell
from harness.spec.quantity import EXAMPLES, Work
from harness.spec.work import Cell

NO_INTERVAL = "published without an interval and a number of trials, so it cannot be known"
_MOST_NAMED = 3


class PublishedCell(Cell):
    """What a published figure is of: the keys that its table gives, and no others. Never recorded, so it has no tag."""

    name: str
    keys: tuple[tuple[str, str | int | bool], ...]

    @classmethod
    def of(cls, figure: PublishedFigure) -> "PublishedCell":
        """The cell of `figure`."""
        return cls(name=figure.label, keys=tuple(figure.keys.items()))

    @property
    def work(self) -> Work:
        """One example: a rate is published, and nothing is known of the steps."""
        return Work(EXAMPLES, 1)

    @property
    def subject(self) -> str:
        """The model."""
        return str(self.get("model"))

    @property
    def label(self) -> str:
        """The figure's."""
        return self.name

    def get(self, key: str) -> Any:
        """The value of a key of a cell; None where the table does not give it."""
        return dict(self.keys).get(key)


@dataclass(frozen=True)
class _Item:
    """One thing that can be compared: a measured cell or a published figure."""

    name: str
    cell: Cell
    trials: CellTrials
    estimate: LogEstimate | None
    figure: PublishedFigure | None


def compare_imported(a: Run, b: Run, margins: Margins, correction: Correction, across_machines: bool) -> Comparison:
    """Two runs of which one was imported, or both. Raises StorageError when nothing can be compared.

    A published figure is of another machine, or of one that nobody knows: only `across_machines` compares it with
    what was measured, and with a figure of other hardware.
    """
    of_a, of_b = _items(a), _items(b)
    pairs = _pairs(of_a, of_b)
    if not pairs:
        raise StorageError(
            f"the runs have nothing in common: A has {_some(of_a)}; B has {_some(of_b)}; a figure and a cell are "
            "the same where every key that the table gives (strategy, replicas, model, data, batch size) is the cell's"
        )
    if not across_machines and (unlike := _unlike_hardware(pairs)):
        raise StorageError(f"{unlike}; --across-machines compares them all the same")
    compared = [_compared(left, right) for left, right in pairs]
    verdicts = verdicts_of(compared, margins, correction)
    rows = tuple(
        Row(left.name, left.trials, right.trials, _explained(both, left, right))
        for (left, right), both in zip(pairs, verdicts, strict=True)
    )
    used = [{id(left) for left, _ in pairs}, {id(right) for _, right in pairs}]
    only_a, only_b = (
        tuple(item.name for item in items if id(item) not in ids) for items, ids in zip((of_a, of_b), used, strict=True)
    )
    return Comparison(
        kind="published",
        title_a=a.manifest.run_id,
        title_b=b.manifest.run_id,
        margins=margins,
        correction=correction,
        rows=rows,
        only_a=only_a,
        only_b=only_b,
        remarks=tuple(_remarks(a, b)),
        manifests=(a.manifest, b.manifest),
    )


def log_estimate(figure: PublishedFigure) -> LogEstimate:
    """ln X of a published figure, with a standard error where the table gives an interval and two trials or more."""
    mean = math.log(figure.throughput_examples_per_s)
    if figure.low is None or figure.high is None or figure.confidence is None or (figure.trials or 0) < 2:
        return LogEstimate(mean, None, None, None, 1, "none")
    assert figure.trials is not None
    freedom = figure.trials - 1
    error = math.log(figure.high / figure.low) / 2 / t_quantile(freedom, figure.confidence)
    return LogEstimate(mean, error, freedom, error * math.sqrt(figure.trials), figure.trials, "t")


def _items(run: Run) -> list[_Item]:
    imported = run.manifest.what
    if isinstance(imported, ImportedRecord):
        return [_of_figure(figure) for figure in imported.figures]
    return [
        _Item(side.trials.cell.label, side.trials.cell, side.trials, _estimate(side), None)
        for side in side_cells(run).values()
    ]


def _of_figure(figure: PublishedFigure) -> _Item:
    cell = PublishedCell.of(figure)
    return _Item(cell.label, cell, _published(figure, cell), log_estimate(figure), figure)


def _estimate(side: SideCell) -> LogEstimate | None:
    measured = side.trials.measured
    return None if measured is None else own_estimate(measured.sample, side.pilot_blocks)


def _published(figure: PublishedFigure, cell: PublishedCell) -> CellTrials:
    """The figure in the place of a cell's trials; what nobody measured is None or empty."""
    throughput = Interval(
        figure.throughput_examples_per_s,
        figure.low,
        figure.high,
        figure.confidence or 0.95,
        "none" if figure.low is None else "t",
        figure.trials or 1,
    )
    return CellTrials(
        cell=cell,
        status="ok",
        counts={"ok": figure.trials} if figure.trials else {},
        planned=0,
        measured=Measured(
            sample=Sample((math.log(figure.throughput_examples_per_s),), ("published",)),
            throughput=throughput,
            step_time_s=throughput.scaled(1 / cell.work.amount).inverted(),
            cpu_seconds_each=None,
            paging=None,
            peak_memory_bytes=None,
            peak_device_memory_bytes=None,
            trials=figure.trials or 0,
            windows=None,
        ),
        phases_s={},
        fixed_s=None,
        problems=(),
        notes=(),
        executed=Executed(),
        physical_devices=1,
        shared=False,
        resources=Resources(),
        device=DeviceRecord(),
    )


def _pairs(of_a: Sequence[_Item], of_b: Sequence[_Item]) -> list[tuple[_Item, _Item]]:
    """What is the same on both sides; StorageError where one thing could be several of the other side."""
    pairs = [(left, right) for left in of_a for right in of_b if _same(left, right)]
    for side in (0, 1):
        others: dict[int, list[_Item]] = {}
        for pair in pairs:
            others.setdefault(id(pair[side]), []).append(pair[1 - side])
        meant = {}
        for item in {id(pair[side]): pair[side] for pair in pairs}.values():
            same = others[id(item)]
            if len(same) > 1 and len(same := _at_defaults(item, same)) != 1:
                raise _ambiguous(item, same or others[id(item)])
            [meant[id(item)]] = same
        pairs = [pair for pair in pairs if pair[1 - side] is meant[id(pair[side])]]
    return pairs


def _at_defaults(item: _Item, same: Sequence[_Item]) -> list[_Item]:
    """Of several that could be `item` those at the defaults of what the table has no column for."""
    figure = item.figure or same[0].figure
    silent = {key: value for key, value in LATER.items() if figure is None or key not in figure.keys}
    return [other for other in same if all(other.cell.get(key) == value for key, value in silent.items())]


def _ambiguous(item: _Item, same: Sequence[_Item]) -> StorageError:
    figure = item.figure or same[0].figure
    assert figure is not None
    apart = [
        key
        for key in TrainingCell.model_fields
        if key not in figure.keys and len({str(other.cell.get(key)) for other in same}) > 1
    ]
    remedy = f"add the column {' or '.join(apart[:_MOST_NAMED])}" if apart else "the table says it twice"
    return StorageError(f"'{item.name}' could be {len(same)} of the other run ({_some(same)}): {remedy}")


def _same(left: _Item, right: _Item) -> bool:
    if left.figure is not None and right.figure is not None:
        return left.figure.keys == right.figure.keys
    figure, cell = (left.figure, right.cell) if left.figure is not None else (right.figure, left.cell)
    assert figure is not None
    in_examples = cell.work.quantity == EXAMPLES  # as every figure of a table is
    return in_examples and all(cell.get(key) == value for key, value in figure.keys.items())


def _unlike_hardware(pairs: Sequence[tuple[_Item, _Item]]) -> str | None:
    for left, right in pairs:
        if left.figure is None or right.figure is None:
            figure = left.figure or right.figure
            assert figure is not None
            there = figure.hardware or "hardware that the table does not name"
            return f"'{figure.label}' was not measured here, but on {there}"
        if left.figure.hardware != right.figure.hardware:
            named = [figure.hardware or "not named" for figure in (left.figure, right.figure)]
            return f"'{left.name}': the hardware differs ({named[0]}, {named[1]})"
    return None


def _compared(left: _Item, right: _Item) -> Compared:
    if left.estimate is None or right.estimate is None:
        name = "A" if left.estimate is None else "B"
        side = left if left.estimate is None else right
        reason = side.trials.problem.reason if side.trials.problem else "it was never run"
        return Compared(None, reason=f"{name} has no throughput: {reason}")
    return Compared(welch(right.estimate, left.estimate))


def _explained(verdicts: Verdicts, left: _Item, right: _Item) -> Verdicts:
    """An undecided row says which figure cannot be decided about, or how many trials of the measured side decide it."""
    if verdicts.wall.verdict != "undecided":
        return verdicts
    lacking = [
        name
        for name, item in (("A", left), ("B", right))
        if item.figure is not None and item.estimate is not None and item.estimate.standard_error is None
    ]
    if lacking:
        return Verdicts(replace(verdicts.wall, reason=f"{' and '.join(lacking)} {NO_INTERVAL}"), verdicts.cpu)
    needed = _trials_needed(left, right, verdicts.wall.margins)
    return Verdicts(replace(verdicts.wall, blocks_needed=needed), verdicts.cpu)


def _trials_needed(left: _Item, right: _Item, margins: Margins) -> int | None:
    """The fewest trials of the measured side that would decide, the published figure as it is; None beyond 1,000.

    One after the other: where few trials are behind the figure, more of ours may leave fewer degrees of freedom.
    """
    measured, figure = (left, right) if right.figure is not None else (right, left)
    if measured.figure is not None or measured.estimate is None or figure.estimate is None:
        return None
    own, deviation = measured.estimate, measured.estimate.deviation
    if deviation is None:
        return None
    for count in range(own.count + 1, MOST_BLOCKS + 1):
        error = deviation / math.sqrt(count)
        more = replace(own, standard_error=error, degrees_of_freedom=count - 1, count=count)
        if _decides(welch(more, figure.estimate), margins):
            return count
    return None


def _decides(estimate: LogEstimate, margins: Margins) -> bool:
    distance = abs(estimate.mean)
    beyond, within = (estimate.tail(reach) for reach in (distance - margins.log_delta, margins.log_epsilon - distance))
    return beyond is not None and within is not None and min(2 * beyond, within) <= ALPHA


def _remarks(a: Run, b: Run) -> list[str]:
    remarks = []
    for name, run in (("A", a), ("B", b)):
        imported = run.manifest.what
        if isinstance(imported, ImportedRecord):
            sources = "; ".join(imported.sources[:_MOST_NAMED]) or "no source is named"
            remarks.append(f"{name} was not measured here: published figures from {imported.file} ({sources}).")
    remarks.append("Whether a published step computed the right thing is not known: no gate was passed.")
    return remarks


def _some(items: Sequence[_Item]) -> str:
    more = f" and {len(items) - _MOST_NAMED} more" if len(items) > _MOST_NAMED else ""
    return ", ".join(item.name for item in items[:_MOST_NAMED]) + more
