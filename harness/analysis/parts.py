"""The parts of a step, each as so much of the time of each arm, with what was measured of it.

`docs/protocol.md#parts-of-a-step` has the formulas.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.estimates.intervals import CONFIDENCE, Interval, log_mean, t_quantile
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
    FamilyRecord,
)

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
COUNTS = 0.10
"""The least share of a step by which a part binds it."""
PARTS: Mapping[PartName, PartWeights] = {
    "input": {WHOLE: 1, NO_INPUT: -1},
    "communication": {WHOLE: 1, NO_REDUCTION: -1},
    "update": {WHOLE: 1, NO_UPDATE: -1},
    "dispatch": {EMPTY: 1},
    "contention": {FORWARD_BACKWARD: 1, ALONE: -1},
    "compute": {ALONE: 1, EMPTY: -1},
}
"""How much of each arm's time makes a part. All of them and `unexplained` are the whole step."""
PARTS_OF_SERVERS: Mapping[PartName, PartWeights] = {
    "input": PARTS["input"],
    "pull": {WHOLE: 1, NO_PULL: -1},
    "push": {WHOLE: 1, NO_PUSH: -1},
    "dispatch": PARTS["dispatch"],
    "contention": PARTS["contention"],
    "compute": PARTS["compute"],
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


def part_weights(family: FamilyRecord) -> dict[PartName, PartWeights]:
    """Of each part that the family has: one replica has nobody to wait for, and all it computes it computes alone."""
    served = NO_PULL in family.arms
    parts: dict[PartName, PartWeights] = dict(PARTS_OF_SERVERS if served else PARTS)
    if family.alone is None:
        parts.pop("communication", None)
        del parts["contention"]
        parts["compute"] = IN_TRACE["compute"]
    elif family.at_once > 1:
        parts["contention"] = {FORWARD_BACKWARD: 1, ALONE: -1 / family.at_once}
        parts["compute"] = {ALONE: 1 / family.at_once, EMPTY: -1}
    parts["unexplained"] = left_by(parts.values())
    lacking = {NO_REDUCTION, REDUCTION, BARRIER, IN_ONE_CALL} - set(family.arms)
    return parts | {name: weights for name, weights in WITHIN.items() if not lacking & weights.keys()}


def left_by(parts: Iterable[PartWeights]) -> PartWeights:
    """What parts leave of the whole step."""
    rest: dict[str, float] = {WHOLE: 1.0}
    for weights in parts:
        for arm, weight in weights.items():
            rest[arm] = rest.get(arm, 0.0) - weight
    return {arm: weight for arm, weight in rest.items() if weight}


@dataclass(frozen=True)
class StepPart:
    """A part of the step with its 95 % interval; the ends are None where one block cannot tell."""

    name: PartName
    value: float
    low: float | None
    high: float | None
    blocks: int = 0
    """That it was measured in."""

    @property
    def binds_as(self) -> PartName:
        """The part that a step is bound by where this binds it: the host's share is of calling the step."""
        return "dispatch" if self.name == "host" else self.name

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
    def may_overlap(self) -> bool:
        """Whether its interval reaches so far below 0 that parts which count may overlap."""
        return self.low is None or self.low <= -COUNTS

    @property
    def overlaps(self) -> bool:
        """Whether its whole interval lies there."""
        return self.high is not None and self.high <= -COUNTS

    @property
    def most_gain(self) -> float | None:
        """How many times as fast the step would be at most without it: 1 ÷ (1 − the upper limit)."""
        return None if self.high is None or self.high >= 1 else 1 / (1 - max(0.0, self.high))

    def above(self, other: "StepPart") -> bool:
        """Whether it is more than another beyond doubt."""
        return self.low is not None and other.high is not None and other.high < self.low


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


def values_of(weights: PartWeights, ratios: Iterable[Mapping[str, float]]) -> list[float]:
    """What they add up to, of each block that has all of their arms."""
    having = (ratio for ratio in ratios if weights.keys() <= ratio.keys())
    return [math.fsum(weight * ratio[arm] for arm, weight in weights.items()) for ratio in having]


def step_part(name: PartName, values: Sequence[float]) -> StepPart:
    """The part that has these values, one a block."""
    mean = mean_over_blocks(values)
    return StepPart(name, mean.value, mean.low, mean.high, len(values))


def mean_over_blocks(values: Sequence[float]) -> Interval:
    """Of one value a block, mean ± t·s/√P."""
    mean = log_mean(values, "t")
    if mean.standard_error is None or mean.degrees_of_freedom is None:
        return Interval(mean.mean, None, None, count=len(values))
    half = t_quantile(mean.degrees_of_freedom, CONFIDENCE) * mean.standard_error
    return Interval(mean.mean, mean.mean - half, mean.mean + half, method="t", count=len(values))
