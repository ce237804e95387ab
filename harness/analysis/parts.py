"""The parts of a step, each as so much of the time of each arm: `docs/protocol.md#parts-of-a-step`."""

from collections.abc import Iterable, Mapping
from typing import Literal

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
