"""Input pipelines beside what their models take: at which rate of the model its input would be the limit.

`docs/protocol.md#input-pipelines` defines the figures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.cells import Measured
from harness.analysis.estimates.intervals import Interval, compare
from harness.analysis.summary import CellSummary, WorkloadSummary
from harness.spec.pipeline import CUTS, AppetiteCell, Cut, PipelineCell

InputLimit = Literal["later", "now", "undecided", "cannot_know", "not_judged"]


@dataclass(frozen=True)
class FedBy:
    """A pipeline that was measured, beside the model that it feeds."""

    cell: PipelineCell
    summary: CellSummary
    rate: Interval
    """What it gives, in the unit of the cell's work."""
    headroom: Interval
    """That ÷ what the model takes."""
    processors: float | None
    """What it would use to feed the model at the model's own rate."""
    limit: InputLimit
    """Whether input is the limit `now`, or `later`, once the model takes `headroom` times as much."""


@dataclass(frozen=True)
class FedModel:
    """A model at one batch and number of threads, and its pipelines that were measured, the fastest first."""

    cell: AppetiteCell
    appetite: Interval
    inputs: tuple[FedBy, ...]

    @property
    def ranked(self) -> tuple[FedBy, ...]:
        """Those with a place: what is unproved is no answer, unless it was asked to be ranked."""
        return tuple(one for one in self.inputs if one.summary.place is not None)

    @property
    def fastest(self) -> FedBy:
        """Of those that are `ranked`."""
        return self.ranked[0]


def fed_models(work: WorkloadSummary) -> tuple[FedModel, ...]:
    """Every model of which it was measured what it takes, and an input; nothing of other work."""
    found = []
    for taker in work.cells:
        cell, taken = taker.trials.cell, taker.measured
        if isinstance(cell, AppetiteCell) and taken is not None:
            inputs = [fed for one in work.cells if (fed := _fed_by(one, cell, taken, work.judged)) is not None]
            if inputs:
                ordered = tuple(sorted(inputs, key=lambda one: -one.rate.value))
                found.append(FedModel(cell, taken.throughput, ordered))
    return tuple(found)


def by_cell(models: Sequence[FedModel]) -> dict[str, tuple[FedModel, FedBy]]:
    """Each pipeline with its model, by the pipeline's cell."""
    return {fed.summary.cell_id: (model, fed) for model in models for fed in model.inputs}


@dataclass(frozen=True)
class Stage:
    """What a pipeline gives that is cut off behind a stage, or all of it."""

    pipeline: CellSummary
    """All of it."""
    summary: CellSummary
    """What was measured: the pipeline, or what is cut off of it."""
    cut: Cut
    """Empty is all of it."""
    rate: Interval
    cpu_seconds_each: float | None
    """Of all stages up to there."""


def stages_of(work: WorkloadSummary) -> tuple[Stage, ...]:
    """Of each pipeline that was measured cut off, too: behind each stage, and whole."""
    found = []
    for whole, own in cuts_of(work):
        every: list[tuple[Cut, CellSummary]] = [*own, ("", whole)] if own else []
        found += [
            Stage(whole, one, cut, one.measured.throughput, one.measured.cpu_seconds_each)
            for cut, one in every
            if one.measured is not None
        ]
    return tuple(found)


def cuts_of(work: WorkloadSummary) -> Iterator[tuple[CellSummary, list[tuple[Cut, CellSummary]]]]:
    """Each pipeline, and what was asked for of it cut off behind a stage, measured or not."""
    cuts = {cell.trials.cell: cell for cell in work.cells if not cell.trials.cell.competes}
    for whole in work.cells:
        cell = whole.trials.cell
        if isinstance(cell, PipelineCell) and cell.competes:
            wanted = dict.fromkeys(cell.cut_behind(cut) for cut in CUTS)
            yield whole, [(cut.cut, cuts[cut]) for cut in wanted if cut in cuts]


def of_pipelines(work: WorkloadSummary) -> bool:
    """Whether a ranking is of input pipelines."""
    return any(isinstance(cell.trials.cell, PipelineCell) for cell in work.cells)


def _fed_by(one: CellSummary, model: AppetiteCell, taken: Measured, judged: bool) -> FedBy | None:
    cell = one.trials.cell
    if one.measured is None or not isinstance(cell, PipelineCell) or not cell.competes or cell.appetite != model:
        return None
    headroom = compare(one.measured.sample, taken.sample).interval()
    each = one.measured.cpu_seconds_each
    processors = None if each is None else each * taken.throughput.value
    return FedBy(cell, one, one.measured.throughput, headroom, processors, limit_of(headroom, judged))


def limit_of(headroom: Interval, judged: bool) -> InputLimit:
    """Whether an input is the limit, by its rate ÷ what the model takes."""
    if not judged:
        return "not_judged"
    if headroom.low is None or headroom.high is None:
        return "cannot_know"
    if headroom.low > 1:
        return "later"
    return "now" if headroom.high < 1 else "undecided"
