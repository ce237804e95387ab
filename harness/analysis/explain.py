"""Where a step's time goes: what each part of it takes, what binds it, and how much there is to win.

`docs/protocol.md#parts-of-a-step` has the formulas. In block b an arm x takes r_x = t_x / t_whole of the whole step,
both measured alive together; a part is a sum of such ratios, one value a block, and its interval is Student's t over
blocks.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.analysis.estimates.intervals import CONFIDENCE, Interval, log_mean, t_quantile
from harness.analysis.estimates.verdict import fewest_after
from harness.analysis.summary import JUDGED
from harness.analysis.workers import WorkerTimes, step_times
from harness.record.explain import (
    ALONE,
    BARRIER,
    EMPTY,
    FORWARD,
    FORWARD_BACKWARD,
    IN_ONE_CALL,
    NO_INPUT,
    NO_PULL,
    NO_PUSH,
    NO_REDUCTION,
    NO_UPDATE,
    REDUCTION,
    WHOLE,
    ExplainPlan,
    FamilyRecord,
)
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.spec.cell import Cell

PartName = Literal[
    "input",
    "communication",
    "update",
    "pull",
    "push",
    "dispatch",
    "contention",
    "compute",
    "unexplained",
    "forward",
    "backward",
    "hidden",
    "wait",
    "host",
    "rest",
]
PartWeights = Mapping[str, float]
PARTS: Mapping[PartName, PartWeights] = {
    "input": {WHOLE: 1, NO_INPUT: -1},
    "communication": {WHOLE: 1, NO_REDUCTION: -1},
    "update": {WHOLE: 1, NO_UPDATE: -1},
    "dispatch": {EMPTY: 1},
    "contention": {FORWARD_BACKWARD: 1, ALONE: -1},
    "compute": {ALONE: 1, EMPTY: -1},
}
"""How much of each arm's time makes a part. All of them and `unexplained` are the whole step."""
OF_SERVERS: Mapping[PartName, PartWeights] = {
    "input": PARTS["input"],
    "pull": {WHOLE: 1, NO_PULL: -1},
    "push": {WHOLE: 1, NO_PUSH: -1},
    "dispatch": {EMPTY: 1},
    "contention": {FORWARD_BACKWARD: 1, ALONE: -1},
    "compute": {ALONE: 1, EMPTY: -1},
}
"""The same of an update that a worker makes to parameter servers; `ALONE` is shared by the workers there are."""
WITHIN: Mapping[PartName, PartWeights] = {
    "forward": {FORWARD: 1, EMPTY: -1},
    "backward": {FORWARD_BACKWARD: 1, FORWARD: -1},
    "hidden": {REDUCTION: 1, EMPTY: -1, WHOLE: -1, NO_REDUCTION: 1},
    "wait": {BARRIER: 1, NO_REDUCTION: -1},
    "host": {NO_INPUT: 1, IN_ONE_CALL: -1},
}
"""What dispatch, contention and compute together are made of in the order of time; and what the sums of gradients take
by themselves, less what the step waits for, which runs behind those three. Where it is below 0 replicas wait for each
other longer than the sums take. `wait` is within communication, `host` beside dispatch."""
IN_TRACE: Mapping[PartName, PartWeights] = {
    "compute": {FORWARD_BACKWARD: 1, EMPTY: -1},
    "update": PARTS["update"],
    "communication": PARTS["communication"],
    "input": PARTS["input"],
}
"""What a trace tells, too, by the names it has there, and how much of each arm's time that is; `rest` is what these
leave of the step."""
COUNTS = 0.10
"""The least share of a step by which a part binds it."""


@dataclass(frozen=True)
class StepPart:
    """A part of the step with its 95 % interval; the ends are None where one block cannot tell."""

    name: PartName
    value: float
    low: float | None
    high: float | None

    @property
    def counts(self) -> bool:
        """Whether it is there beyond doubt, and large enough to bind the step."""
        return self.low is not None and self.low > 0 and self.value >= COUNTS

    @property
    def surely_counts(self) -> bool:
        """Whether its whole interval is of shares that bind."""
        return self.low is not None and self.low >= COUNTS

    @property
    def may_count(self) -> bool:
        """Whether its interval reaches a share that binds."""
        return self.high is None or self.high >= COUNTS

    @property
    def most_gain(self) -> float | None:
        """How many times as fast the step would be at most without it: 1 ÷ (1 − the upper limit)."""
        return None if self.high is None or self.high >= 1 else 1 / (1 - max(0.0, self.high))


@dataclass(frozen=True)
class TracedPart:
    """A part of the step as one profile has it, beside what the arms tell of it."""

    by_arms: StepPart
    share: float
    """Of the profiled step."""
    seconds: float

    @property
    def differs(self) -> bool:
        """Whether it lies outside of the arms' interval."""
        low, high = self.by_arms.low, self.by_arms.high
        return low is not None and high is not None and not low <= self.share <= high


@dataclass(frozen=True)
class Explanation:
    """One cell's step, taken apart."""

    cell: Cell
    blocks: int
    """Blocks in which all arms were measured."""
    step_time_s: float | None
    """Of the whole step, the geometric mean over these blocks."""
    parts: tuple[StepPart, ...]
    """In the order of PARTS and then `unexplained`; empty where no block is complete."""
    within: tuple[StepPart, ...]
    lacking: Mapping[str, str]
    """Arms that give nothing, and why."""
    untold: Mapping[PartName, tuple[str, ...]]
    """Parts that the step has and nobody knows, each with the arms that it lacks; `unexplained` is not known either
    then."""
    staleness: Interval | None = None
    """Updates of other workers between the pull of an update and its push, the mean; None where workers wait for each
    other."""
    traced: tuple[TracedPart, ...] = ()
    """Of one trial that was profiled; empty where none was, or its profile cannot be read so."""
    slow_workers: tuple[WorkerTimes, ...] = ()
    """Those that are always slower than the fastest, which the others wait for: no arm can leave that out, since each
    takes as long as its slowest worker."""
    judged: bool = True
    """Whether the run has finished: before its end there are shares and no verdict."""

    def part(self, name: PartName) -> StepPart:
        """One of them."""
        return next(share for share in (*self.parts, *self.within) if share.name == name)

    @property
    def bound_by(self) -> str:
        """`input`, `communication`, `update`, `dispatch`, `contention` or `compute`; `mixed`, `undecided`, or
        `not_judged` of a run that has not finished. What is not known may bind the step, too, so nothing but a part
        that surely counts stands against it."""
        if not self.judged:
            return "not_judged"
        overheads = [share for share in self.parts if share.name not in ("compute", "unexplained")]
        if not overheads or any(share.low is None for share in overheads):
            return "undecided"
        binding = sorted((share for share in overheads if share.counts), key=lambda share: -share.value)
        hidden = bool(self.untold) or self.part("unexplained").may_count
        if hidden and not any(share.surely_counts for share in binding):
            return "undecided"
        if not binding:
            return "undecided" if any(share.may_count for share in overheads) else "compute"
        first, rest = binding[0], binding[1:]
        if all(share.high is not None and first.low is not None and share.high < first.low for share in rest):
            return str(first.name)
        return "mixed"

    @property
    def open_parts(self) -> list[StepPart]:
        """Those of which more blocks could tell whether they bind, or hide what does, the largest first."""
        able = (share for share in self.parts if share.name != "compute" and share.may_count)
        known = (share for share in able if share.name != "unexplained" or not share.surely_counts)
        return sorted(known, key=lambda share: -share.value)

    @property
    def blocks_needed(self) -> int | None:
        """Blocks with which each of `open_parts` would be known to ±COUNTS, were they to scatter as these do; None
        where one block tells no scatter, and beyond 1,000."""
        ends = [(share.low, share.high) for share in self.open_parts]
        widths = [high - low for low, high in ends if low is not None and high is not None]
        if self.blocks < 2 or not widths:
            return None
        deviation = max(widths) / 2 / t_quantile(self.blocks - 1) * math.sqrt(self.blocks)
        return fewest_after(self.blocks, lambda count: t_quantile(count - 1) * deviation / math.sqrt(count) <= COUNTS)


def explanations_of(run: Run) -> tuple[Explanation, ...]:
    """One for each cell that was asked for. UsageError on a run of another kind."""
    plan = run.manifest.part(ExplainPlan)
    cells = {cell.cell_id: cell for cell in run.manifest.cells}
    judged = run.manifest.status == JUDGED
    explained = (_explained(family, cells[family.cell_id], plan, run.trials) for family in plan.families)
    return tuple(replace(found, judged=judged) for found in explained)


def _explained(family: FamilyRecord, cell: Cell, plan: ExplainPlan, trials: Sequence[TrialRecord]) -> Explanation:
    own = [trial for trial in trials if plan.family(trial.block) == family and trial.status != "interrupted"]
    lacking = {name: reason for name in family.arms if (reason := _lacks([t for t in own if t.side == name]))}
    there = [name for name in family.arms if name not in lacking]
    blocks = [times for times in _times(own) if set(there) <= times.keys()]
    ratios = [{name: times[name] / times[WHOLE] for name in there} for times in blocks] if WHOLE in there else []
    has = part_weights(family)
    parts = {name: weights for name, weights in has.items() if set(weights) <= set(there)}
    untold = [name for name in has if name not in parts and name != "unexplained" and name not in WITHIN]
    shares = (
        tuple(_share(name, [_sum(weights, ratio) for ratio in ratios]) for name, weights in parts.items())
        if ratios
        else ()
    )
    return Explanation(
        cell=cell,
        blocks=len(ratios),
        step_time_s=math.exp(math.fsum(math.log(times[WHOLE]) for times in blocks) / len(blocks)) if ratios else None,
        parts=tuple(share for share in shares if share.name not in WITHIN),
        within=tuple(share for share in shares if share.name in WITHIN),
        lacking=lacking,
        untold={name: tuple(arm for arm in has[name] if arm not in there) for name in untold},
        staleness=_staleness(whole := [trial for trial in own if trial.side == WHOLE and trial.measured]),
        traced=tuple(_traced(family, there, ratios, whole)),
        slow_workers=() if NO_PULL in family.arms else _slow_workers(whole),
    )


def _slow_workers(whole: Sequence[TrialRecord]) -> tuple[WorkerTimes, ...]:
    """By what each worker's forward and backward take it alone, in trials of the whole step."""
    return tuple(worker for times in step_times(whole).values() for worker in times.workers if worker.slower)


def _traced(
    family: FamilyRecord, there: Sequence[str], ratios: Sequence[Mapping[str, float]], whole: Sequence[TrialRecord]
) -> Iterator[TracedPart]:
    """Each part that both tell. Where replicas add up by ops that no profile can tell from others, that is the input
    alone."""
    seconds = next((trial.trace.parts for trial in whole if trial.trace is not None and trial.trace.parts), None)
    if seconds is None or not ratios:
        return
    apart = family.alone is None or "communication" in seconds
    weights = {name: of for name, of in IN_TRACE.items() if name in seconds and (apart or name == "input")}
    if apart and "rest" in seconds:
        weights["rest"] = _left_by(weights.values())
    for name, of in weights.items():
        if set(of) <= set(there):
            by_arms = _share(name, [_sum(of, ratio) for ratio in ratios])
            yield TracedPart(by_arms, seconds[name] / math.fsum(seconds.values()), seconds[name])


def _lacks(trials: Sequence[TrialRecord]) -> str | None:
    """Why an arm gives nothing: it was wrong once, or failed no less often than it was measured. None where it does."""
    failed = [trial for trial in trials if not trial.measured]
    wrong = [trial for trial in failed if trial.status == "wrong_result"]
    if not wrong and (not failed or len(failed) < len(trials) / 2):
        return None
    last = (wrong or failed)[-1]
    return f"{last.status}: {last.reason}"


def part_weights(family: FamilyRecord) -> dict[PartName, PartWeights]:
    """Of each part that the family has: one replica has nobody to wait for, and all it computes it computes alone."""
    served = NO_PULL in family.arms
    parts: dict[PartName, PartWeights] = dict(OF_SERVERS if served else PARTS)
    if family.alone is None:
        parts.pop("communication", None)
        del parts["contention"]
        parts["compute"] = {FORWARD_BACKWARD: 1, EMPTY: -1}
    elif family.at_once > 1:
        parts["contention"] = {FORWARD_BACKWARD: 1, ALONE: -1 / family.at_once}
        parts["compute"] = {ALONE: 1 / family.at_once, EMPTY: -1}
    parts["unexplained"] = _left_by(parts.values())
    lacking = {NO_REDUCTION, REDUCTION, BARRIER, IN_ONE_CALL} - set(family.arms)
    return parts | {name: weights for name, weights in WITHIN.items() if not lacking & weights.keys()}


def _left_by(parts: Iterable[PartWeights]) -> PartWeights:
    """What parts leave of the whole step."""
    rest: dict[str, float] = {WHOLE: 1.0}
    for weights in parts:
        for arm, weight in weights.items():
            rest[arm] = rest.get(arm, 0.0) - weight
    return {arm: weight for arm, weight in rest.items() if weight}


def _times(trials: Sequence[TrialRecord]) -> list[dict[str, float]]:
    """Seconds a step of each arm, block by block; of a block that ran again, the later group's."""
    found: dict[int, dict[str, float]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.block, trial.attempt)):
        if trial.measured and trial.side is not None and trial.step_time_s:
            found.setdefault(trial.block, {})[trial.side] = trial.step_time_s
    return [times for times in found.values() if WHOLE in times]


def _sum(weights: PartWeights, ratio: Mapping[str, float]) -> float:
    return math.fsum(weight * ratio[arm] for arm, weight in weights.items())


def _share(name: PartName, values: Sequence[float]) -> StepPart:
    mean = _mean(values)
    return StepPart(name, mean.value, mean.low, mean.high)


def _staleness(trials: Sequence[TrialRecord]) -> Interval | None:
    """The mean over each trial's updates, of whole steps."""
    counted = [trial.updates.staleness for trial in trials if trial.updates is not None and trial.updates.staleness]
    means = [sum(passed * count for passed, count in found.items()) / sum(found.values()) for found in counted]
    return _mean(means) if means else None


def _mean(values: Sequence[float]) -> Interval:
    """Of one value a block, mean ± t·s/√P."""
    mean = log_mean(values, "t")
    if mean.standard_error is None or mean.degrees_of_freedom is None:
        return Interval(mean.mean, None, None, count=len(values))
    half = t_quantile(mean.degrees_of_freedom, CONFIDENCE) * mean.standard_error
    return Interval(mean.mean, mean.mean - half, mean.mean + half, method="t", count=len(values))


__all__ = ["COUNTS", "PARTS", "WITHIN", "Explanation", "StepPart", "TracedPart", "explanations_of", "part_weights"]
