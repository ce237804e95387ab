"""Rounds of a validation, made up."""

from collections.abc import Sequence

import pytest
from scipy import stats

from harness.record import Run
from harness.record.validation import Effect, Rate, ValidationRecord
from tests.validations import Arm, Round, validation_run

WIGGLE = [0.001, -0.001, 0.0005, -0.0005, 0.0008, -0.0008]
"""Of mean 0, and far below δ."""
WILD = [0.1, -0.1, 0.05, -0.05, 0.08, -0.08]
"""Never decided, however many blocks."""


def around(mean: float, wiggle: Sequence[float] = WIGGLE) -> list[float]:
    return [mean + value for value in wiggle]


def again(*means: float, **changes: object) -> list[Round]:
    """Rounds of one A/A decision each, whose estimates are `means`."""
    return [Round([Arm(around(mean))], **changes) for mean in means]  # type: ignore[arg-type]


def effect(record: ValidationRecord, plant: str | None = None, share: float = 0.0) -> Effect:
    [found] = [one for one in record.effects if (one.plant, one.share) == (plant, share)]
    return found


def limits(count: int, of: int) -> tuple[float, float]:
    found = stats.binomtest(count, of).proportion_ci(0.95, method="exact")
    return found.low, found.high


def is_rate(rate: Rate | None, count: int, of: int) -> bool:
    assert rate is not None
    low, high = limits(count, of)
    return (rate.count, rate.of) == (count, of) and (rate.low, rate.high) == pytest.approx((low, high), abs=1e-9)


def at_speeds(*speeds: float, arms: int = 1) -> Run:
    """A/A rounds between which the machine's speed changed: a step takes `speeds[i]` times as long in round i."""
    return validation_run([Round([Arm(WIGGLE)] * arms, speeds=[speed] * 6) for speed in speeds])
