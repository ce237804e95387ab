"""What is planted to see whether `explain` finds it, and what became of it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common import interval

from harness.analysis.parts import PartName, PartWeights, StepPart, part_weights
from harness.record.explain import (
    ALONE,
    BARRIER,
    EMPTY,
    FORWARD_BACKWARD,
    NO_INPUT,
    NO_PULL,
    NO_PUSH,
    NO_REDUCTION,
    NO_UPDATE,
    WHOLE,
    FamilyRecord,
)

LINK_DELAY = "link_delay"
"""No plant of the program: the planted arms' workers are on a network with a longer delay."""
SLOW_WORKER = "slow_worker"
"""Another worker is slow in each step. In the plain arms all are slow, by as much in the mean."""
OF_REPLICAS = {"input_stall": "input", "host_delay": "dispatch", "device_work": "compute", "slow_update": "update"}
OF_WORKERS = {LINK_DELAY: "communication", SLOW_WORKER: "wait"}
OF_SERVERS = {"slow_pull": "pull", "slow_push": "push"}
CAUSES = OF_REPLICAS | OF_WORKERS | OF_SERVERS
"""What is planted, and the part of a step that it is in: in any step, between workers alone, and between workers and
parameter servers."""
HOLDS = {"wait": "communication"}
"""Parts that are within another, which grows by as much."""
SECONDS = ("input_stall", "host_delay")
"""Of these so many seconds are planted in a step; of the others it is seen what they take."""
PASSES = ("device_work", "slow_update")
"""Of these so many passes of work are planted as by a pilot take the share that is asked for; of all others seconds."""
EXACT = ("input_stall",)
"""Of these a step becomes longer by the seconds that are planted. After a pause of the host a step is slower itself: in
a bare loop an empty step of TensorFlow took 135 µs, and 148 to 200 µs after 0.63 ms of Python."""
NOTHING = "nothing"
SHARES = (0.20, 0.10, 0.05)
JUDGED = 0.10
"""From this share on there is a promise."""
REPLICAS = (1, 2)
WORKERS = 2
EACH_A_WORKER, SERVED = "w", "s"
"""Behind the number of replicas in a key, where each is a worker of its own, and those have a parameter server."""
NUMBERS = 3
PLANTED = "planted "
"""Before the name of an arm in which the cause is planted."""
Times = Mapping[str, float]
"""Seconds a step of each arm of a block."""


@dataclass(frozen=True)
class CauseCase:
    """Something that is planted, as a share of a step, at so many replicas; `number` counts those that are alike."""

    cause: str
    share: float
    replicas: int
    number: int
    workers: int = 1
    """As many as replicas, or one that has all of them."""
    served: bool = False
    """Whether they have a parameter server."""

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        apart = SERVED if self.served else EACH_A_WORKER if self.workers > 1 else ""
        return f"{self.cause}/{self.share:g}/{self.replicas}{apart}/{self.number}"

    @property
    def part(self) -> str:
        """The part that is to grow; empty where nothing is planted."""
        return CAUSES.get(self.cause, "")

    @property
    def arms(self) -> list[str]:
        """Those that its parts are made of."""
        if self.served:
            return [WHOLE, NO_INPUT, NO_PULL, NO_PUSH, FORWARD_BACKWARD, EMPTY, ALONE]
        plain = [WHOLE, NO_INPUT, NO_UPDATE, FORWARD_BACKWARD, EMPTY]
        met = [BARRIER] if self.part in HOLDS else []
        return plain if self.replicas == 1 else [*plain, NO_REDUCTION, *met, ALONE]

    @classmethod
    def of(cls, key: str) -> "CauseCase":
        """The case of a key."""
        cause, share, replicas, number = key.split("/")
        count, apart = int(replicas.rstrip(EACH_A_WORKER + SERVED)), replicas.endswith((EACH_A_WORKER, SERVED))
        served = replicas.endswith(SERVED)
        return cls(cause, float(share), count, int(number), count if apart else 1, served)


def cases() -> list[CauseCase]:
    """48 judged in one process, 8 of 5 %, 6 with nothing planted, mixed so that a part of them is of all kinds; then
    those of two workers, 16 judged, 8 of 5 % and two with nothing planted, which take several times as long."""
    found = [
        CauseCase(cause, share, replicas, number)
        for number in range(NUMBERS)
        for share in (*SHARES, 0.0)
        for replicas in REPLICAS
        for cause in (OF_REPLICAS if share else (NOTHING,))
        if share >= JUDGED or number == 0 or not share
    ]
    random.Random(1).shuffle(found)
    for served, causes in ((False, OF_REPLICAS | OF_WORKERS), (True, OF_SERVERS)):
        planted = [(cause, share) for share in SHARES for cause in causes]
        found += [CauseCase(cause, share, WORKERS, 0, WORKERS, served) for cause, share in [*planted, (NOTHING, 0.0)]]
    return found


@dataclass(frozen=True)
class PartGrowth:
    """By how much of the plain step a part became longer, in the mean over blocks, with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "PartGrowth":
        """Of one value a block, by Student's t."""
        return cls(*interval(values)[:3])

    def holds(self, value: float) -> bool:
        """Whether the interval holds it."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{100 * self.value:+.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class CauseResult:
    """What became of one case."""

    case: CauseCase
    planted: PartGrowth
    """What was planted, as a share of the plain step of each block; of PASSES what a pilot says that they take."""
    longer: PartGrowth
    """How much longer the whole step became."""
    parts: Mapping[str, PartGrowth]
    off_planted: PartGrowth
    """Growth of the right part less what was planted."""
    off_longer: PartGrowth
    """The same less how much longer the whole step became."""

    @property
    def expected(self) -> PartGrowth:
        """What the right part is to grow by."""
        return self.planted if self.case.cause in EXACT else self.longer

    @property
    def found(self) -> bool:
        """Whether the right part grew beyond doubt, and by what it is to, within its interval."""
        return self.seen and (self.off_planted if self.case.cause in EXACT else self.off_longer).holds(0.0)

    @property
    def seen(self) -> bool:
        """Whether the right part grew beyond doubt."""
        return self.parts[self.case.part].low > 0

    @property
    def wrong(self) -> list[str]:
        """Other parts that are named: which grew beyond doubt, and by half of what the right one is to at least."""
        named = (name for name, of in self.parts.items() if of.low > 0 and of.value >= self.expected.value / 2)
        right = (self.case.part, HOLDS.get(self.case.part), "unexplained")
        return [name for name in named if name not in right]


def result_of(case: CauseCase, blocks: Sequence[Times], each: float) -> CauseResult | None:
    """What `blocks` say of a case in which `each` was planted in a step; None of fewer than two blocks."""
    if len(blocks) < 2:
        return None
    grew: dict[str, list[float]] = {name: [_growth(of, block) for block in blocks] for name, of in _weights(case)}
    longer = [_growth({WHOLE: 1.0}, block) for block in blocks]
    planted = [_planted(case, each, block) for block in blocks]
    right = grew.get(case.part, longer)

    def off(expected: Sequence[float]) -> PartGrowth:
        return PartGrowth.of([a - b for a, b in zip(right, expected, strict=True)])

    parts = {name: PartGrowth.of(values) for name, values in grew.items()}
    return CauseResult(case, PartGrowth.of(planted), PartGrowth.of(longer), parts, off(planted), off(longer))


def shares_of(case: CauseCase, blocks: Sequence[Times], prefix: str) -> tuple[StepPart, ...]:
    """The parts of the plain step, or with the prefix PLANTED of the planted one, as `explain` has them; none of fewer
    than two blocks."""
    if len(blocks) < 2:
        return ()
    shares = (
        (name, [sum(of[arm] * block[prefix + arm] for arm in of) / block[prefix + WHOLE] for block in blocks])
        for name, of in _weights(case)
        if name not in HOLDS
    )
    return tuple(StepPart(name, *interval(values)[:3], len(values)) for name, values in shares)


def _weights(case: CauseCase) -> list[tuple[PartName, PartWeights]]:
    alone = "" if case.replicas > 1 else None
    family = FamilyRecord(cell_id="", arms=case.arms, alone=alone, at_once=case.workers if case.served else 1)
    return [(name, of) for name, of in part_weights(family).items() if set(of) <= set(case.arms)]


def _planted(case: CauseCase, each: float, block: Times) -> float:
    """As a share of the plain step: workers of parameter servers make their updates at the same time."""
    if case.cause in PASSES:
        return case.share
    return each / (case.workers if case.served else 1) / block[WHOLE]


def _growth(weights: PartWeights, block: Times) -> float:
    """Of a part, as a share of the plain step."""
    return sum(weight * (block[PLANTED + arm] - block[arm]) for arm, weight in weights.items()) / block[WHOLE]
