"""Validations with known truth: rounds whose every decision is given by the log ratios of its blocks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.analysis.estimates.power import clopper_pearson
from harness.record import Run, TrialRecord
from harness.record.manifest import ArmRecord, PlanRecord, RoundRecord, ValidationPlan
from harness.record.trial import Plant
from harness.record.validation import Effect, ValidationRecord
from harness.spec.work import Cell
from tests.comparisons import MIRRORED, as_run, scaled, validation
from tests.synthetic import make_run

RUN_ID = "validation-run"


@dataclass(frozen=True)
class Arm:
    """Side B of a decision; in block i it is e^`logs[i]` times as fast as arm `a`, and crashes where that is None.

    `against` is side A: `a`, or `arm0`, `arm1` … for one of the other arms.
    """

    logs: Sequence[float | None]
    plant: Plant | None = None
    against: str = "a"


@dataclass(frozen=True)
class Round:
    """Arms of one cell beside `a`; the first `pilot` blocks are the first stage. `second` None: not planned yet."""

    arms: Sequence[Arm]
    pilot: int = 6
    cell: Cell = MIRRORED
    planned: bool = True
    speeds: Sequence[float] = ()
    """How long a step takes in each block, in which both sides share; 1 where nothing is given."""


def slow(kind: str, share: float, logs: Sequence[float | None]) -> Arm:
    """An arm with something planted."""
    return Arm(logs, Plant(kind=kind, share=share))


@dataclass
class _Made:
    rounds: list[RoundRecord] = field(default_factory=list)
    trials: list[TrialRecord] = field(default_factory=list)


def validation_run(rounds: Sequence[Round], **plan: Any) -> Run:
    """The run of a validation of these rounds; `plan` are keys of its ValidationPlan."""
    manifest, [template] = make_run([MIRRORED], blocks=1, faults=False, windows=10)
    made = _Made()
    seconds = sum(one.pilot for one in rounds)
    pilots = 0
    for one in rounds:
        extra = len(one.arms[0].logs) - one.pilot
        blocks = [*range(pilots, pilots + one.pilot), *range(seconds, seconds + extra)]
        pilots, seconds = pilots + one.pilot, seconds + extra
        named = {f"arm{number}": arm for number, arm in enumerate(one.arms)}
        arms = [ArmRecord(name=name, against=arm.against, plant=arm.plant) for name, arm in named.items()]
        second = blocks[one.pilot :] if one.planned else None
        made.rounds.append(
            RoundRecord(
                cell_id=one.cell.cell_id, arms=[ArmRecord(name="a"), *arms], pilot=blocks[: one.pilot], second=second
            )
        )
        made.trials += list(_trials(template, one, ["a", *named], blocks))
    values: dict[str, Any] = {"quick": False, "delta": 0.01, "epsilon": 0.03, "half_width": 0.01, "max_blocks": 12}
    validation = ValidationPlan(**{**values, "rounds": made.rounds, **plan})
    sealed = PlanRecord.sealed(1, 1, [[["a"]]] * pilots)
    cells = list(dict.fromkeys(one.cell for one in rounds))
    return as_run(manifest, made.trials, RUN_ID, cells=cells, plans=[sealed], validation=validation)


def _trials(template: TrialRecord, one: Round, names: Sequence[str], blocks: Sequence[int]) -> Iterator[TrialRecord]:
    for index, block in enumerate(blocks):
        speed = one.speeds[index] if one.speeds else 1.0
        logs: list[float | None] = [0.0, *(arm.logs[index] for arm in one.arms)]
        for order, (name, log) in enumerate(zip(names, logs, strict=True)):
            times = speed * math.exp(-(log or 0.0))
            place = {"block": block, "group": f"b{block}", "side": name, "order": order}
            record = scaled(template, times, times)
            record = record.model_copy(update={"cell": one.cell, "cell_id": one.cell.cell_id, **place})
            yield record if log is not None else _crashed(record)


def _crashed(record: TrialRecord) -> TrialRecord:
    gone = ("windows", "step_time_s", "throughput_examples_per_s", "cpu_seconds_per_example")
    return record.model_copy(
        update={"status": "crashed", "phase": "build", "reason": "signal 11", **dict.fromkeys(gone)}
    )


def effect(
    slower: int = 0,
    of: int = 20,
    plant: str | None = None,
    share: float = 0.0,
    faster: int = 0,
    undecided: int = 0,
    **changes: Any,
) -> Effect:
    """Decisions of which so many were slower, faster and undecided, the rest equivalent."""
    same = of - slower - faster - undecided
    values: dict[str, Any] = {
        "cell": MIRRORED,
        "plant": plant,
        "share": share,
        "verdicts": {"slower": slower, "faster": faster, "undecided": undecided, "equivalent": same},
        "slower": clopper_pearson(slower, of),
        "equivalent": clopper_pearson(same, of),
        "false_alarms": None if plant else clopper_pearson(slower + faster, of),
        "measured": 0.0,
        "blocks_median": 6,
        "blocks_most": 12,
        "seconds_median": 60.0,
        "seconds_most": 120.0,
    }
    return Effect(**{**values, **changes})


def planted(slower: int, of: int = 20, share: float = 0.05, kind: str = "device_work", **changes: Any) -> Effect:
    return effect(slower, of, kind, share, **changes)


def record(*effects: Effect, **changes: Any) -> ValidationRecord:
    return validation(effects=list(effects), **changes)
