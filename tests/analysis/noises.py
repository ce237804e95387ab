"""Noise that was seen, for simulations of a rule, and what makes the rule's intervals shorter than they should be."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.goals.series import SERIES, STEP_S, THETA, WINDOWS, log_throughput, taking_turns

Array = NDArray[np.float64]
Chance = np.random.Generator
_NAMED = {series.name: series for series in SERIES}


# log ratios of pairs about their true mean: (chance, rounds, pairs) → (rounds, pairs)


def normal(chance: Chance, rounds: int, pairs: int) -> Array:
    return chance.standard_normal((rounds, pairs))


def heavy_tailed(chance: Chance, rounds: int, pairs: int) -> Array:
    return chance.standard_t(3, (rounds, pairs))


def of_a_drifting_machine(chance: Chance, rounds: int, pairs: int) -> Array:
    """Windows that resemble their neighbours, on a machine that wanders by 5 %."""
    return _of_series("autocorrelated", chance, rounds, pairs)


def as_seen(chance: Chance, rounds: int, pairs: int) -> Array:
    """The same machine; processes differ by themselves, with heavy tails, and windows scatter by 7 to 15 %."""
    return _of_series("as seen", chance, rounds, pairs)


def _of_series(name: str, chance: Chance, rounds: int, pairs: int) -> Array:
    logs = log_throughput(_NAMED[name].step_times(chance, rounds, taking_turns(pairs)))
    return np.asarray(logs[:, 1] - logs[:, 0] - THETA)


def cells_as_seen(chance: Chance, cells: int, groups: int) -> Array:
    """ln X of trials of many cells, (cells, groups), `as_seen` but for what the machine does to all of a group."""
    seen = _NAMED["as seen"]
    logs = seen.own(chance, (cells, groups))[..., None] + seen.window(chance, (cells, groups, WINDOWS))
    return log_throughput(STEP_S * np.exp(logs))


# rules with intervals that are too short


def scaled(values: Sequence[float], times: float) -> list[float]:
    """The same mean, and `times` the deviations from it: each interval of the mean is `times` as long."""
    mean = math.fsum(values) / len(values)
    return [mean + times * (value - mean) for value in values]


def reach(bounds: tuple[float, float] | None, truth: float) -> float:
    """How far out the truth lies in an interval, which holds it at 1 or less, and `times` of it at `times` or less."""
    assert bounds is not None
    low, high = bounds
    return abs(2 * truth - low - high) / (high - low)
