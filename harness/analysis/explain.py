"""Where a step's time goes: what each part of it takes, what binds it, and how much there is to win.

`docs/protocol.md#parts-of-a-step` has the formulas. In block b an arm x takes r_x = t_x / t_whole of the whole step,
both of one group, alive together; a part is a sum of such ratios, one value a block, and its interval is Student's t
over blocks.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.analysis.estimates.intervals import Interval, log_mean, t_quantile
from harness.analysis.estimates.verdict import fewest_after
from harness.analysis.paging import Paging, paging_of
from harness.analysis.parts import (
    COUNTS,
    IN_TRACE,
    WITHIN,
    PartName,
    StepPart,
    TracedPart,
    left_by,
    mean_over_blocks,
    part_weights,
    step_part,
    values_of,
)
from harness.analysis.pipelines import InputLimit, limit_of
from harness.analysis.summary import JUDGED
from harness.analysis.workers import WorkerTimes, step_times
from harness.environment import Fact
from harness.record.explain import (
    IN_ONE_CALL,
    NO_INPUT,
    NO_PULL,
    ONLY_INPUT,
    STEPS_A_CALL,
    WHOLE,
    ExplainPlan,
    FamilyRecord,
)
from harness.record.reading import Run
from harness.record.trial import TraceRecord, TrialRecord, is_given_up
from harness.spec.work import Cell

MOST_TRIALS = 100
"""No more are advised."""


@dataclass(frozen=True)
class Explanation:
    """One cell's step, taken apart."""

    cell: Cell
    blocks: int
    """Blocks in which all arms of `parts` were measured."""
    of_blocks: int
    """All that were begun."""
    step_time_s: float | None
    """Of the whole step, the geometric mean over these blocks."""
    parts: tuple[StepPart, ...]
    """In the order of PARTS and then `unexplained`; empty where no block is complete."""
    within: tuple[StepPart, ...]
    """Each of those of these blocks that have its arms."""
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
    trace: TraceRecord | None = None
    """Of the trial that was to be profiled: where its profile is, or why there is none; None where none was to be."""
    calls_are_free: bool = False
    """Whether several steps in one call have shown that calling each costs the step less than COUNTS."""
    slow_workers: tuple[WorkerTimes, ...] = ()
    """Those that are always slower than the fastest, which the others wait for: no arm can leave that out, since each
    takes as long as its slowest worker."""
    input: tuple[str, ...] = ()
    """The stages of its input pipeline as it was built; empty where nobody knows."""
    operations: tuple[str, ...] = ()
    """What adds up over replicas in the program of the whole step (`Executed`); empty where nobody knows."""
    pack_bytes: tuple[int, ...] = ()
    """Bytes of each sum in it; empty as there."""
    own_training: tuple[str, ...] = ()
    """What of its training the model brings (`Executed`); empty as there."""
    headroom: Interval | None = None
    """What its input pipeline gives by itself ÷ what the step takes on batches that lie on the devices; None where that
    was not measured."""
    pace: Interval | None = None
    """What it gives by itself ÷ what the whole step was seen to take; None as above."""
    paging: Paging | None = None
    """What page faults take of the whole step; None where they were not counted."""
    judged: bool = True
    """Whether the run has finished: before its end there are shares and no verdict."""

    def part(self, name: PartName) -> StepPart:
        """One of them."""
        return next(share for share in (*self.parts, *self.within) if share.name == name)

    @property
    def input_limit(self) -> InputLimit | None:
        """Whether the pipeline is the step's limit `now`, or `later`; None where nobody knows what it gives."""
        return None if self.headroom is None else limit_of(self.headroom, self.judged)

    @property
    def outpaced(self) -> bool:
        """Whether the step surely took more than its pipeline gives by itself: batches that waited since the turns of
        others, or were within a pass whose beginning takes time. No training goes on so."""
        return self.pace is not None and self.pace.high is not None and self.pace.high < 1

    @property
    def bound_by(self) -> str:
        """`input`, `communication`, `update`, `dispatch`, `contention` or `compute`; `mixed`, `undecided`, or
        `not_judged` of a run that has not finished. What is not known may bind the step, too, so nothing but a part
        that surely counts stands against it. Where the pipeline is the limit, no other part can be won."""
        if not self.judged:
            return "not_judged"
        overheads = self.overheads
        if self.input_limit == "now" and any(share.name == "input" for share in overheads):
            return "input"
        if not overheads or any(share.low is None for share in overheads):
            return "undecided"
        binding = [share for share in overheads if share.counts]
        not_told = [share for share in overheads if share.may_count and not share.counts]
        if self.hidden and not any(share.surely_counts for share in binding):
            return "undecided"
        if not binding:
            return "undecided" if not_told else "compute"
        first, rest = binding[0], binding[1:]
        if not all(first.above(share) for share in rest):
            return "mixed"
        return str(first.binds_as) if all(first.above(share) for share in not_told) else "undecided"

    @property
    def overheads(self) -> list[StepPart]:
        """The parts that may bind a step which computes, the largest first."""
        never = {"compute", "unexplained", "dispatch"}
        others = [share for share in self.parts if share.name not in never]
        return sorted([*others, *self._calling], key=lambda share: -share.value)

    @property
    def _calling(self) -> list[StepPart]:
        """What calling the step costs: dispatch, or the host's share where that may bind the step and dispatch does
        not, or is clearly less."""
        dispatch = [s for s in self.parts if s.name == "dispatch" and s not in self.free]
        host = [s for s in self.within if s.name == "host" and s.low is not None and s.may_count]
        return [s for s in host if not any(of.counts and not s.above(of) for of in dispatch)] or dispatch

    @property
    def free(self) -> list[StepPart]:
        """Dispatch that may be a share that binds, and costs the step less."""
        return [s for s in self.parts if s.name == "dispatch" and s.may_count and self.calls_are_free]

    @property
    def binding(self) -> StepPart | None:
        """The part that binds the step, or takes the most of it where several do; None where that is not decided."""
        return next(iter(self.all_binding), None)

    @property
    def all_binding(self) -> list[StepPart]:
        """The parts that bind the step, the largest first."""
        bound, overheads = self.bound_by, self.overheads
        if bound == "mixed":
            return [share for share in overheads if share.counts]
        compute = [share for share in self.parts if share.name == "compute"]
        return [share for share in (*overheads, *compute) if share.binds_as == bound][:1]

    def gain_without(self, share: StepPart) -> float | None:
        """`most_gain` of a part that may bind the step, None of another: no step is without it, or it costs nothing."""
        return share.most_gain if share in self.overheads else None

    @property
    def hiding(self) -> list[StepPart]:
        """What may hide a part that binds: much that is unexplained, or less than nothing, for then parts overlap and
        some time is counted twice."""
        rest = [share for share in self.parts if share.name == "unexplained" and (share.may_count or share.may_overlap)]
        return rest + [share for share in self.parts if share.name != "unexplained" and share.overlaps]

    @property
    def hidden(self) -> bool:
        """Whether something that is not known may bind the step."""
        return bool(self.untold or self.hiding)

    @property
    def open_parts(self) -> list[StepPart]:
        """Those of which more blocks could tell whether they bind, or hide what does, the largest first."""
        able = [share for share in self.overheads if share.may_count and not self._settled(share)]
        able += [s for s in self.hiding if s.name == "unexplained" and not (s.surely_counts or s.overlaps)]
        return sorted(able, key=lambda share: -share.value)

    def _settled(self, share: StepPart) -> bool:
        return share.surely_counts if self.hidden else share.counts

    def blocks_for(self, share: StepPart) -> int | None:
        """Blocks that would tell of one of `open_parts`, were it to keep its value and to scatter as it does; None
        beyond `most_trials`, and where one block tells no scatter."""
        if share.low is None or share.high is None or share.blocks < 2:
            return None
        lasting = any(s.name != "unexplained" or abs(s.value) >= COUNTS for s in self.hiding) or bool(self.untold)
        wanted = abs(COUNTS - (abs(share.value) if share.name == "unexplained" else share.value))
        if share.name != "unexplained" and share.value >= COUNTS and not lasting:
            wanted = share.value
        deviation = (share.high - share.low) / 2 / t_quantile(share.blocks - 1) * math.sqrt(share.blocks)
        found = fewest_after(share.blocks, lambda count: t_quantile(count - 1) * deviation / math.sqrt(count) < wanted)
        return found if found is not None and found <= self.most_trials else None

    @property
    def most_trials(self) -> int:
        """More than anybody would measure of it."""
        return max(MOST_TRIALS, 2 * self.blocks)

    @property
    def blocks_needed(self) -> int | None:
        """Blocks that would tell of all `open_parts`; None where nobody knows, or one of them is too near COUNTS."""
        needed = [self.blocks_for(share) for share in self.open_parts]
        return max((count for count in needed if count is not None), default=None) if None not in needed else None

    @property
    def too_near(self) -> list[StepPart]:
        """Those of `open_parts` of which no number of blocks tells that anybody would measure."""
        return [s for s in self.open_parts if self.blocks > 1 and self.blocks_for(s) is None]


def explanations_of(run: Run) -> tuple[Explanation, ...]:
    """One for each cell that was asked for. UsageError on a run of another kind."""
    plan = run.manifest.part(ExplainPlan)
    cells = {cell.cell_id: cell for cell in run.manifest.cells}
    judged = run.manifest.status == JUDGED
    facts = run.manifest.facts
    explained = (_explained(family, cells[family.cell_id], plan, run.trials, facts) for family in plan.families)
    return tuple(replace(found, judged=judged) for found in explained)


def _explained(
    family: FamilyRecord, cell: Cell, plan: ExplainPlan, trials: Sequence[TrialRecord], facts: Mapping[str, Fact]
) -> Explanation:
    own = [trial for trial in trials if plan.family(trial.block) == family and trial.status != "interrupted"]
    lacking = {name: reason for name in family.arms if (reason := _lacks([t for t in own if t.side == name]))}
    there = {name for name in family.arms if name not in lacking}
    has = part_weights(family)
    parts = {name: weights for name, weights in has.items() if weights.keys() <= there}
    untold = [name for name in has if name not in parts and name != "unexplained" and name not in WITHIN]
    if untold:
        parts.pop("unexplained", None)  # there are arms that it does not need, and the parts of which it is then not
    needed = {arm for name, weights in parts.items() if name not in WITHIN for arm in weights}
    ratios = _ratios(own) if WHOLE in there else {}
    blocks = {block: of for block, of in ratios.items() if needed <= of.keys()}
    shares = [step_part(name, values) for name, of in parts.items() if (values := values_of(of, blocks.values()))]
    within = [share for share in shares if share.name in WITHIN]
    whole = [trial for trial in own if trial.side == WHOLE and trial.measured]
    steps = [math.log(trial.step_time_s) for trial in whole if trial.block in blocks and trial.step_time_s]
    return Explanation(
        cell=cell,
        blocks=len(blocks),
        of_blocks=len({trial.block for trial in own}),
        step_time_s=math.exp(math.fsum(steps) / len(steps)) if steps else None,
        parts=tuple(share for share in shares if share.name not in WITHIN),
        within=tuple(within),
        lacking=lacking,
        untold={name: tuple(arm for arm in has[name] if arm not in there) for name in untold},
        staleness=_staleness(whole),
        traced=tuple(_traced(family, blocks.values(), whole)),
        trace=next((trial.trace for trial in whole if trial.trace is not None), None),
        calls_are_free=_calls_are_free(within, [trial for trial in own if trial.side == IN_ONE_CALL]),
        input=next((tuple(trial.executed.input) for trial in whole if trial.executed.input), ()),
        operations=next((tuple(trial.executed.operations) for trial in whole if trial.executed.operations), ()),
        own_training=next((tuple(trial.executed.own_training) for trial in whole if trial.executed.own_training), ()),
        pack_bytes=next((tuple(trial.executed.pack_bytes) for trial in whole if trial.executed.pack_bytes), ()),
        headroom=_ratio_of(NO_INPUT, ONLY_INPUT, ratios.values()) if {NO_INPUT, ONLY_INPUT} <= there else None,
        pace=_ratio_of(WHOLE, ONLY_INPUT, ratios.values()) if ONLY_INPUT in there else None,
        paging=paging_of((trial for trial in whole if trial.measured), facts),
        slow_workers=() if NO_PULL in family.arms else _slow_workers(whole),
    )


def _calls_are_free(within: Sequence[StepPart], in_one_call: Sequence[TrialRecord]) -> bool:
    """By `host`, which lacks what is left of the calls: one for each STEPS_A_CALL steps of a window."""
    counts = [trial.windows.steps_per_window for trial in in_one_call if trial.measured and trial.windows is not None]
    left = max((-(-count // STEPS_A_CALL) / count for count in counts), default=1.0)
    ends = [share.high for share in within if share.name == "host"]
    return any(high is not None and high < COUNTS * (1 - left) for high in ends)


def _slow_workers(whole: Sequence[TrialRecord]) -> tuple[WorkerTimes, ...]:
    """By what each worker's forward and backward take it alone, in trials of the whole step."""
    return tuple(worker for times in step_times(whole).values() for worker in times.workers if worker.slower)


def _traced(
    family: FamilyRecord, ratios: Collection[Mapping[str, float]], whole: Sequence[TrialRecord]
) -> Iterator[TracedPart]:
    """Each part that both tell. Where replicas add up by ops that no profile can tell from others, that is the input
    alone."""
    seconds = next((trial.trace.parts for trial in whole if trial.trace is not None and trial.trace.parts), None)
    if seconds is None:
        return
    apart = family.alone is None or "communication" in seconds
    weights = {name: of for name, of in IN_TRACE.items() if name in seconds and (apart or name == "input")}
    if apart and "rest" in seconds:
        weights["rest"] = left_by(weights.values())
    for name, of in weights.items():
        if values := values_of(of, ratios):
            yield TracedPart(step_part(name, values), seconds[name] / math.fsum(seconds.values()), seconds[name])


def _lacks(trials: Sequence[TrialRecord]) -> str | None:
    """Why an arm gives nothing: it was given up, or failed no less often than it was measured. None where it does."""
    failed = [trial for trial in trials if not trial.measured]
    wrong = [trial for trial in failed if trial.status == "wrong_result"]
    if not (wrong or is_given_up(trials)) and (not failed or len(failed) < len(trials) / 2):
        return None
    last = (wrong or failed)[-1]
    return f"{last.status}: {last.reason}"


def _ratios(trials: Sequence[TrialRecord]) -> dict[int, dict[str, float]]:
    """What each arm takes of the whole step of its own group, block by block; of several groups that have the arm, and
    of a block that ran again, the later one's."""
    groups: dict[tuple[int, str], dict[str, float]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.block, trial.attempt)):
        if trial.measured and trial.side is not None and trial.step_time_s:
            groups.setdefault((trial.block, trial.group), {})[trial.side] = trial.step_time_s
    found: dict[int, dict[str, float]] = {}
    for (block, _), times in groups.items():
        if WHOLE in times:
            found.setdefault(block, {}).update({arm: time / times[WHOLE] for arm, time in times.items()})
    return found


def _ratio_of(one: str, other: str, ratios: Iterable[Mapping[str, float]]) -> Interval | None:
    """What an arm takes of another, the geometric mean over blocks that have both, by Student's t of logarithms."""
    logs = [math.log(of[one] / of[other]) for of in ratios if {one, other} <= of.keys()]
    return log_mean(logs, "t").interval() if logs else None


def _staleness(trials: Sequence[TrialRecord]) -> Interval | None:
    """The mean over each trial's updates, of whole steps."""
    counted = [trial.updates.staleness for trial in trials if trial.updates is not None]
    means = [
        sum(passed * count for passed, count in found.items()) / updates
        for found in counted
        if (updates := sum(found.values()))
    ]
    return mean_over_blocks(means) if means else None
