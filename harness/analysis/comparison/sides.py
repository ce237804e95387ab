"""The two sides of a comparison: a cell's trials on each, checked, and the log ratio between them.

Everything here is B over A: above zero, B has the higher throughput. Sides of one run are paired by the
groups that both took turns in; sides of two runs never are, whatever their groups are called.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.cells import CellTrials, read_cell
from harness.analysis.comparison.clocks import Verdicts, cpu_sample
from harness.analysis.estimates.intervals import LogEstimate, Sample, own_estimate, welch
from harness.analysis.estimates.layout import Layout
from harness.analysis.estimates.verdict import Correction, Judgement, Margins, invalid, judge_all, pending
from harness.analysis.summary import pilot_blocks_of, planned_trials
from harness.analysis.trends import trend_of, trends_of
from harness.errors import StorageError
from harness.record import Run, TrialRecord

SideName = Literal["A", "B"]
_SAME = 1e-6
"""Relative difference up to which two figures of one record agree: they were written from one another."""
_ENDINGS = {
    "wrong_result": "gave a wrong result",
    "unsupported": "cannot run it",
    "out_of_memory": "ran out of memory",
    "timeout": "made no progress until its time was up",
    "crashed": "crashed",
    "interrupted": "stopped before it was measured",
}


@dataclass(frozen=True)
class SideCell:
    """A cell on one side: what its trials say, and its processor time."""

    trials: CellTrials
    cpu: Sample | None
    """None where it has no measurement, or where processor time was not recorded."""
    pilot_blocks: int | None
    """Blocks of the run's first stage, where a second was planned from its spread."""


@dataclass(frozen=True)
class Compared:
    """One comparison before it is judged: the log ratio by each clock, or why there is none."""

    wall: LogEstimate | None
    cpu: LogEstimate | None = None
    reason: str | None = None
    pending: bool = False
    """There is none yet, and nothing is wrong."""


def side_cells(run: Run, mark: str = "") -> dict[str, SideCell]:
    """Every cell of a sweep by its id, in the manifest's order. `mark` goes before the names of groups.

    StorageError when the records contradict themselves, HarnessError when one cannot be averaged.
    """
    check_records(run)
    planned, pilot_blocks = planned_trials(run.manifest), pilot_blocks_of(run.manifest)
    cells = {cell.cell_id: cell for cell in run.manifest.cells}
    trials: defaultdict[str, list[TrialRecord]] = defaultdict(list)
    for trial in run.trials:
        cells.setdefault(trial.cell_id, trial.cell)
        trials[trial.cell_id].append(trial.model_copy(update={"group": mark + trial.group}))
    sides, found = {}, trends_of(run.trials)
    for cell_id, cell in cells.items():
        device, trend = run.manifest.device_of(cell), trend_of(found, cell_id)
        read = read_cell(cell, trials[cell_id], planned[cell_id], device, pilot_blocks, trend=trend)
        ok = sorted((t for t in trials[cell_id] if t.measured), key=lambda trial: trial.block)
        cpu = cpu_sample(ok, [trial.group for trial in ok]) if read.measured else None
        sides[cell_id] = SideCell(read, cpu, pilot_blocks)
    return sides


def check_records(run: Run) -> None:
    """Raise StorageError where records say things that no run writes: edited by hand, or copied twice."""
    for key, count in Counter(_place(trial) for trial in run.trials if trial.measured).items():
        if count > 1:
            raise StorageError(
                f"'{run.path}': group '{key[0]}' has {count} good trials of one cell, where a run has one: "
                "the records were edited or copied, and trials that are not independent cannot be compared"
            )
    for trial in run.trials:
        if trial.measured:
            _check_figures(run, trial)


def compared(a: SideCell, b: SideCell, layouts: "Layouts | None" = None) -> Compared:
    """ln(X_b/X_a) by both clocks; only a reason when a side has no measurement.

    `layouts` are those of the run that both are cells of; sides of two runs never met.
    """
    if a.trials.measured is None or b.trials.measured is None:
        return Compared(None, reason=why_no_comparison(a.trials, b.trials))
    if layouts is None:
        wall = _apart((a, a.trials.measured.sample), (b, b.trials.measured.sample))
        return Compared(wall, _apart((a, a.cpu), (b, b.cpu)) if a.cpu and b.cpu else None)
    names = b.trials.cell_id, a.trials.cell_id
    return Compared(layouts.wall.ratio(*names), layouts.cpu.ratio(*names) if a.cpu and b.cpu else None)


def _apart(a: tuple[SideCell, Sample], b: tuple[SideCell, Sample]) -> LogEstimate:
    """ln(X_b/X_a) of sides that never met."""
    return welch(*(own_estimate(sample, side.pilot_blocks) for side, sample in (b, a)))


@dataclass(frozen=True)
class Layouts:
    """The layouts of one run by both clocks."""

    wall: Layout
    cpu: Layout

    @classmethod
    def of(cls, sides: Iterable[SideCell]) -> "Layouts":
        """From the cells of one run, which share their first stage."""
        there = [side for side in sides if side.trials.measured is not None]
        pilot = next((side.pilot_blocks for side in there), None)
        wall = {side.trials.cell_id: side.trials.measured.sample for side in there if side.trials.measured is not None}
        cpu = {side.trials.cell_id: side.cpu for side in there if side.cpu is not None}
        return cls(Layout(wall, pilot), Layout(cpu, pilot))


def verdicts_of(items: Sequence[Compared], margins: Margins, correction: Correction) -> tuple[Verdicts, ...]:
    """The verdicts of comparisons that are read together, in their order; each clock corrected by itself."""
    walls = _judged([item.wall for item in items], margins, correction)
    cpus = _judged([item.cpu for item in items], margins, correction)
    return tuple(
        Verdicts(wall or (pending if item.pending else invalid)(item.reason or "it was not measured", margins), cpu)
        for item, wall, cpu in zip(items, walls, cpus, strict=True)
    )


def why_invalid(cell: CellTrials, name: SideName) -> str | None:
    """Why a side gives nothing to compare, with the evidence; None when it is measured."""
    failure = _failure(cell)
    return None if failure is None else f"{name} {failure}"


def why_no_comparison(a: CellTrials, b: CellTrials) -> str | None:
    """Which sides give nothing to compare, and why; None when both are measured."""
    if _failure(a) is not None and _failure(a) == _failure(b):
        return f"A and B alike {_failure(a)}"
    return "; ".join(filter(None, (why_invalid(a, "A"), why_invalid(b, "B")))) or None


def _failure(cell: CellTrials) -> str | None:
    if cell.measured is not None:
        return None
    if cell.status == "missing":
        return "never ran it"
    problem = cell.problem
    assert problem is not None
    where = f" in phase '{problem.phase}'" if problem.phase and cell.status != "wrong_result" else ""
    unseen = [f"{check}: {text}" for check, text in problem.details if text not in problem.reason]
    evidence = f" ({'; '.join(unseen)})" if unseen else ""
    trials = f"{problem.trials} of {cell.trials} trials"
    return f"{_ENDINGS[problem.status]}{where} ({trials}): {problem.reason}{evidence}"


def _judged(
    estimates: Sequence[LogEstimate | None], margins: Margins, correction: Correction
) -> list[Judgement | None]:
    judged = iter(judge_all([item for item in estimates if item is not None], margins, correction))
    return [None if item is None else next(judged) for item in estimates]


def _place(trial: TrialRecord) -> tuple[str, str, str | None]:
    return trial.group, trial.cell_id, trial.side


def _check_figures(run: Run, trial: TrialRecord) -> None:
    """The figures of a good trial follow from its raw windows (`docs/protocol.md#estimators`)."""
    assert trial.windows is not None
    assert trial.step_time_s is not None
    assert trial.throughput is not None
    seconds = trial.windows.seconds[trial.windows.measured_from :]
    where = f"'{run.path}': block {trial.block}, {trial.cell.label}"
    if not seconds:
        raise StorageError(f"{where}: an ok trial without a measured window: the record was edited")
    step_time = math.fsum(seconds) / (len(seconds) * trial.windows.steps_per_window)
    for key, kept, follows in (
        ("step_time_s", trial.step_time_s, step_time),
        (trial.cell.work.quantity.throughput_key, trial.throughput, trial.cell.work.rate(step_time)),
    ):
        if not abs(kept - follows) <= _SAME * follows:  # so that NaN, which compares with nothing, is caught
            raise StorageError(f"{where}: {key} is {kept:g}, but its windows give {follows:g}: the record was edited")
