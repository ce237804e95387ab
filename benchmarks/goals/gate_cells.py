"""The cells of the gate's matrix, which of them are run, and what is counted of how they ended."""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gate_case import OPTIMIZERS
from gate_faults import FAULTS, LADDERS, START, Fault
from gate_models import NAMES
from gate_own import DATA

from harness.analysis.estimates.power import clopper_pearson

STRATEGIES = {
    "none": ("none", 1, 1),
    "mirrored_2": ("mirrored", 2, 1),
    "mirrored_3": ("mirrored", 3, 1),
    "central_2": ("central_storage", 2, 1),
    "workers_2": ("multi_worker_mirrored", 1, 2),
}
"""Strategy, replicas and workers, by name."""
MODES: dict[str, dict[str, str | int | bool]] = {
    "float32": {},
    "bfloat16": {"precision": "mixed_bfloat16"},
    "float16": {"precision": "mixed_float16"},
    "xla": {"xla": True},
    "fit": {"loop": "fit"},
    "several_steps": {"steps_per_execution": 3},
}
"""What a cell has besides: precision, compilation, loop, or steps a call, by name."""
SIDES = [(strategy, "float32") for strategy in STRATEGIES] + [
    ("mirrored_2", mode) for mode in ("bfloat16", "float16", "xla", "fit")
]
"""Every strategy, and modes once."""
LATER = [("mirrored_2", "several_steps"), ("workers_2", "several_steps")]
"""Sides that came later: which model the faults of earlier ones are planted in does not depend on them."""
SHARED = ("none", "mirrored_2", "mirrored_3", "workers_2")
"""Strategies that models with data of their own are trained under."""
FAULTY = (("dense", "adam"), ("no_bias", "sgd"), ("batch_norm", "momentum"))
"""Models and optimizers that faults are planted in."""
OPTIMIZED = ("dense", "batch_norm")
"""Models that every optimizer trains."""


@dataclass(frozen=True)
class Case:
    """One cell of the matrix; right where no fault is named."""

    model: str
    optimizer: str
    strategy: str
    mode: str
    fault: str = ""
    start: str = ""

    @property
    def subject(self) -> str:
        """The model's name as a trial is given it (`gate_case`)."""
        parts = [self.model, self.optimizer, *([self.fault, self.start] if self.fault else [])]
        return "__".join(parts)

    @property
    def key(self) -> str:
        """All that identifies it."""
        return f"{self.subject}/{self.strategy}/{self.mode}"

    @property
    def plan(self) -> Fault | None:
        """The fault; None of a right cell."""
        return FAULTS.get(self.fault)

    @property
    def kind(self) -> str:
        """`right`, `gross` or `slight`."""
        return "right" if self.plan is None else "gross" if self.plan.gross else "slight"


def case_of(key: str) -> Case:
    """The case that a key names; ValueError for none."""
    subject, strategy, mode = key.split("/")
    model, optimizer, fault, start = [*subject.split("__"), "", ""][:4]
    return Case(model, optimizer, strategy, mode, fault, start)


def sample(seed: int = 1) -> list[Case]:
    """The cells that are run: in an order in which every beginning is a fair sample of the right and the gross."""
    right = {Case(model, "adam", *side) for model in NAMES for side in [*SIDES, *LATER]}
    right |= {
        Case(m, o, s, "float32") for o in OPTIMIZERS for m in OPTIMIZED for s in STRATEGIES if _gives_numbers(m, o)
    }
    right |= {Case(model, "adam", strategy, "float32") for model in DATA for strategy in SHARED}
    faulty = [*_faulty(SIDES), *_faulty(LATER)]
    first = sorted(right, key=lambda case: case.key) + [case for case in faulty if case.kind == "gross"]
    then = [case for case in faulty if case.kind == "slight"]
    chance = random.Random(seed)
    return chance.sample(first, len(first)) + chance.sample(then, len(then))


def _faulty(sides: Sequence[tuple[str, str]]) -> Iterator[Case]:
    """Every fault on every one of the `sides`, early and late, the model another one each time."""
    turn = itertools.count()
    for name, fault in FAULTS.items():
        for (strategy, mode), start in itertools.product(sides, START):
            first = next(turn)
            models = [FAULTY[(first + i) % len(FAULTY)] for i in range(len(FAULTY))]
            model, optimizer = next(pair for pair in models if _possible(fault, strategy, *pair))
            if _exists(fault, strategy):
                yield Case(fault.model or model, optimizer, strategy, mode, name, start)
        next(turn)  # so that sides and models are not in step


def everything() -> list[Case]:
    """The whole product: many thousands."""
    sides = list(itertools.product(STRATEGIES, MODES))
    right = [Case(m, o, *side) for m in NAMES for o in OPTIMIZERS for side in sides if _gives_numbers(m, o)]
    return right + [
        Case(fault.model or m, o, strategy, mode, name, start)
        for name, fault in FAULTS.items()
        for (m, o), (strategy, mode), start in itertools.product(FAULTY, sides, START)
        if _possible(fault, strategy, m, o) and _exists(fault, strategy)
    ]


def _gives_numbers(model: str, optimizer: str) -> bool:
    """Adafactor divides 0 by 0, without any strategy too, where a weight's row has no gradient: of blank pixels."""
    return optimizer != "adafactor" or model == "batch_norm"


def _exists(fault: Fault, strategy: str) -> bool:
    return (fault.alone or strategy != "none") and not (fault.copies and strategy == "central_2")


def _possible(fault: Fault, strategy: str, model: str, optimizer: str) -> bool:
    """Plain gradient descent has no slots, and TensorFlow has no batch normalisation under central storage."""
    return (fault.place, optimizer) != ("slot", "sgd") and (strategy, model) != ("central_2", "batch_norm")


JUDGED, UNJUDGED = ("ok", "wrong_result"), ("unproved", "unsupported")
ENDS = (*JUDGED, *UNJUDGED)
"""How a trial may end that does what it says; any other end (crashed, timeout) is broken."""


@dataclass(frozen=True)
class Tally:
    """How cells of one kind ended. Of those that were `judged`, `wrong` are false alarms or misses."""

    wrong: int
    judged: int
    unproved: int
    unsupported: int
    broken: int

    @property
    def row(self) -> tuple[str, ...]:
        """For a table: what was judged, what was wrong, its 95 % limits, and the rest."""
        rate = clopper_pearson(self.wrong, self.judged)
        limits = f"{100 * rate.low:.1f} – {100 * rate.high:.1f} %"
        rest = (self.unproved, self.unsupported, self.broken)
        return (str(self.judged), str(self.wrong), limits, *map(str, rest))


ROW = ("judged", "wrong", "95 %", "unproved", "unsupported", "broken")
"""What Tally.row is of."""


def tally(ends: Iterable[tuple[Case, str]]) -> Tally:
    """Of (case, status): `wrong_result` of a right model is wrong, and `ok` of a faulty one.

    `unproved` and `unsupported` are neither right nor wrong; whatever else (crashed, timeout) is broken.
    """
    counts: Counter[str] = Counter()
    for case, status in ends:
        if status in JUDGED:
            counts["judged"] += 1
            counts["wrong"] += (status == "ok") == (case.plan is not None)
        elif status in UNJUDGED:
            counts[status] += 1
        else:
            counts["broken"] += 1
    return Tally(*(counts[name] for name in ("wrong", "judged", "unproved", "unsupported", "broken")))


def grouped(ends: Mapping[str, str], *keys: str) -> dict[tuple[str, ...], list[tuple[Case, str]]]:
    """Ends, status by key of the cell, by what `keys` name of the case."""
    found: dict[tuple[str, ...], list[tuple[Case, str]]] = {}
    for key, status in sorted(ends.items()):
        case = case_of(key)
        found.setdefault(tuple(str(getattr(case, name)) for name in keys), []).append((case, status))
    return found


def found_from(ends: Sequence[tuple[Case, str]], family: str) -> float | None:
    """The slightest size of a family from which on all grosser ones were always found; None where not even the
    grossest was, or none was tried."""
    slightest = None
    for size in LADDERS[family][1]:
        judged = [status for case, status in ends if case.plan is not None and _is(case.plan, family, size)]
        judged = [status for status in judged if status in ("ok", "wrong_result", "unproved")]
        if not judged or set(judged) != {"wrong_result"}:
            break
        slightest = size
    return slightest


def _is(fault: Fault, family: str, size: float) -> bool:
    return (fault.family, fault.size) == (family, size)
