"""What a run of faults found: medians and ranges over repeats, what checkpoints cost, and how often to make one."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.analysis.estimates.intervals import Interval, log_mean
from harness.record.faults import UNDISTURBED, FaultRecord, FaultsPlan
from harness.spec.axes import ENGINE
from harness.spec.cell import TrainingCell

OF_ENGINE = ("tensorflow", "engine")
"""Who noticed, where that was the framework."""
BETWEEN_FAULTS_S = (3600.0, 86400.0, 7 * 86400.0)
"""Mean times between faults that the advice is worked out for: an hour, a day, a week."""


@dataclass(frozen=True)
class MedianRange:
    """The median of `count` values and their range. So few repeats have no tighter description."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "MedianRange | None":
        """None when there is no value."""
        known = [value for value in values if value is not None]
        return cls(statistics.median(known), min(known), max(known), len(known)) if known else None


@dataclass(frozen=True)
class ScenarioSummary:
    """Every repeat of one scenario."""

    scenario: str
    cell: TrainingCell
    fault: str
    checkpoint_every: int
    planned: int
    statuses: dict[str, int]
    reason: str | None
    """The first reason that a job gave."""
    target: str | None
    detection_s: MedianRange | None
    """Until anybody noticed."""
    detected_by: dict[str, int]
    """Who noticed first."""
    engine_s: MedianRange | None
    """Until the engine noticed, in a process that nothing was done to; None where it did not, or had no time to."""
    useful_step_s: MedianRange | None
    standstill_s: MedianRange | None
    restart_s: MedianRange | None
    replay_s: MedianRange | None
    steps_lost: MedianRange | None
    all_back_s: MedianRange | None
    updates_repeated: int
    updates_lost: int
    updates_torn: int
    updates_scheduled: int
    weights_right: int
    weights_judged: int
    identical: int
    """Jobs whose final state is bit for bit that of an undisturbed one."""
    criterion: str | None

    @property
    def ran(self) -> int:
        """Jobs that were run."""
        return sum(count for status, count in self.statuses.items() if status != "unsupported")


@dataclass(frozen=True)
class CostSummary:
    """What checkpoints cost undisturbed jobs of one cell; jobs are the unit of replication."""

    cell: TrainingCell
    every: int
    overhead: Interval
    """Time of a window with a checkpoint over that of one without."""
    checkpoint_s: MedianRange
    """Seconds that one checkpoint adds to its window."""
    step_s: MedianRange
    """Seconds a step, without checkpoints."""
    bytes: int
    pairs: int


@dataclass(frozen=True)
class Advice:
    """How often to make a checkpoint of a cell when faults come every `between_faults_s` seconds on average."""

    cell: TrainingCell
    between_faults_s: float
    every_s: float
    """Young's optimum, √(2·c·M) for a checkpoint of c seconds and M seconds between faults (Young 1974)."""
    every_steps: int
    lost_share: float
    """Share of time that is then lost: c/T + (T/2 + R)/M, R the time to detect and start again."""
    restart_s: float


@dataclass(frozen=True)
class FaultsSummary:
    """The whole run."""

    scenarios: list[ScenarioSummary]
    costs: list[CostSummary]
    advice: list[Advice]
    planned: int
    recorded: int


def summarise_faults(plan: FaultsPlan, records: Sequence[FaultRecord]) -> FaultsSummary:
    """Summarise what is recorded so far, in the order of the settings. Pure."""
    named = dict.fromkeys(job.scenario for job in sorted(plan.jobs, key=lambda job: _place(plan, job.scenario)))
    planned = Counter(job.scenario for job in plan.jobs)
    by_name = {name: [record for record in records if record.scenario == name] for name in named}
    scenarios = [
        _scenario(name, planned[name], found)
        for name, found in by_name.items()
        if found and found[0].fault != UNDISTURBED
    ]
    costs = [cost for found in by_name.values() if (cost := _cost(found)) is not None]
    # a checkpoint costs the same however often it is made: the jobs of all intervals price it together
    priced = [
        _cost([one for one in records if one.cell == cell]) for cell in dict.fromkeys(cost.cell for cost in costs)
    ]
    advice = [one for cost in priced if cost is not None for one in _advice(cost, scenarios)]
    return FaultsSummary(scenarios, costs, advice, len(plan.jobs), len(records))


def _place(plan: FaultsPlan, scenario: str) -> tuple[int, int, int, int]:
    """Engines, strategies, faults and intervals in the order that they were asked for."""
    *engine, strategy, fault, every = scenario.split("/")
    settings = plan.settings
    faults = [UNDISTURBED, *settings.fault]
    intervals = settings.checkpoint_every
    at = intervals.index(int(every)) if int(every) in intervals else -1
    return settings.engine.index((*engine, ENGINE)[0]), settings.strategy.index(strategy), faults.index(fault), at


def _scenario(name: str, planned: int, found: Sequence[FaultRecord]) -> ScenarioSummary:
    first = found[0]
    ran = [record for record in found if record.status != "unsupported"]
    noticed = [record.detections[0] for record in ran if record.detections]
    by_engine = [
        next((d.after_s for d in record.detections if d.by in OF_ENGINE and d.who != record.target), None)
        for record in ran
    ]
    counted = [record.updates for record in ran if record.updates is not None]
    judged = [record.weights for record in ran if record.weights is not None]
    parts = [record.interruption for record in ran if record.interruption is not None]
    return ScenarioSummary(
        scenario=name,
        cell=first.cell,
        fault=first.fault,
        checkpoint_every=first.checkpoint_every,
        planned=planned,
        statuses=dict(Counter(record.status for record in found)),
        reason=next((record.reason for record in found if record.reason), None),
        target=next((record.target for record in ran if record.target), None),
        detection_s=MedianRange.of(detection.after_s for detection in noticed),
        detected_by=dict(Counter(detection.by for detection in noticed)),
        engine_s=MedianRange.of(by_engine),
        useful_step_s=MedianRange.of(record.useful_step_after_s for record in ran),
        standstill_s=MedianRange.of(record.standstill_s for record in ran),
        restart_s=MedianRange.of(part.restart_s for part in parts),
        replay_s=MedianRange.of(part.replay_s for part in parts),
        steps_lost=MedianRange.of(float(record.steps_lost) for record in ran),
        all_back_s=MedianRange.of(record.all_back_after_s for record in ran),
        updates_repeated=sum(updates.repeated for updates in counted),
        updates_lost=sum(updates.lost for updates in counted),
        updates_torn=sum(updates.torn for updates in counted),
        updates_scheduled=sum(updates.scheduled for updates in counted),
        weights_right=sum(weights.right for weights in judged),
        weights_judged=len(judged),
        identical=sum(bool(weights.identical) for weights in judged),
        criterion=judged[0].criterion if judged else None,
    )


def _cost(found: Sequence[FaultRecord]) -> CostSummary | None:
    costs = [record.cost for record in found if record.cost is not None and record.status == "undisturbed"]
    if not costs:
        return None
    ratios = [
        statistics.fmean(math.log(one / other) for one, other in zip(cost.with_s, cost.without_s, strict=True))
        for cost in costs
    ]
    added = MedianRange.of(
        statistics.fmean(one - other for one, other in zip(cost.with_s, cost.without_s, strict=True)) for cost in costs
    )
    step = MedianRange.of(statistics.fmean(cost.without_s) / cost.steps_per_window for cost in costs)
    assert added is not None
    assert step is not None
    return CostSummary(
        cell=found[0].cell,
        every=found[0].checkpoint_every,
        overhead=log_mean(ratios, "paired t").interval(),
        checkpoint_s=added,
        step_s=step,
        bytes=max(cost.bytes for cost in costs),
        pairs=sum(len(cost.with_s) for cost in costs),
    )


def _advice(cost: CostSummary, scenarios: Sequence[ScenarioSummary]) -> list[Advice]:
    """For processes that are killed, as most faults come to that; nothing where a checkpoint cost nothing."""
    killed = [
        s for s in scenarios if s.cell == cost.cell and s.fault in ("kill_worker", "kill_ps", "restart") and s.restart_s
    ]
    again = [(s.detection_s.median if s.detection_s else 0.0) + s.restart_s.median for s in killed if s.restart_s]
    seconds = cost.checkpoint_s.median
    if seconds <= 0 or not again:
        return []
    restart_s = statistics.median(again)
    found = []
    for between in BETWEEN_FAULTS_S:
        every_s = math.sqrt(2 * seconds * between)
        found.append(
            Advice(
                cell=cost.cell,
                between_faults_s=between,
                every_s=every_s,
                every_steps=max(1, round(every_s / cost.step_s.median)),
                lost_share=seconds / every_s + (every_s / 2 + restart_s) / between,
                restart_s=restart_s,
            )
        )
    return found
