"""Dunnett's distribution against his tables, against Student's and SciPy's, and what its limits keep, simulated."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from harness.analysis.estimates.dunnett import critical_value
from harness.analysis.estimates.intervals import LogEstimate
from tests.analysis.noises import Array, Chance, cells_as_seen


def statistic(freedom: float | None) -> LogEstimate:
    return LogEstimate(0.0, None if freedom is None else 1.0, freedom, None, 4, "moderated t")


@pytest.mark.parametrize(
    ("freedom", "count", "tabled"),
    [(10, 2, 2.15), (10, 5, 2.56), (20, 9, 2.60), (1e9, 2, 1.92), (1e9, 9, 2.42), (5, 4, 2.85)],
)
def test_the_one_sided_limits_are_those_of_dunnetts_table(freedom: float, count: int, tabled: float) -> None:
    assert critical_value(statistic(freedom), count, 0.5, 0.95) == pytest.approx(tabled, abs=0.006)


@pytest.mark.parametrize("correlation", [0.2, 0.7])
@pytest.mark.parametrize("freedom", [3, 12])
def test_it_is_scipys_multivariate_t(freedom: float, correlation: float) -> None:
    shape = np.full((4, 4), correlation) + (1 - correlation) * np.eye(4)
    there = stats.multivariate_t(shape=shape, df=freedom, seed=1)  # type: ignore[arg-type]
    limit = critical_value(statistic(freedom), 4, correlation, 0.95)
    assert limit is not None
    assert there.cdf([limit] * 4) == pytest.approx(0.95, abs=2e-3)


@pytest.mark.parametrize("freedom", [1, 3, 39])
def test_one_comparison_has_students_limit_and_many_lie_between_it_and_bonferronis(freedom: float) -> None:
    alone = float(special.stdtrit(freedom, 0.95))
    assert critical_value(statistic(freedom), 1, 0.0, 0.95) == pytest.approx(alone)
    many = critical_value(statistic(freedom), 13, 0.5, 0.95)
    bonferroni = critical_value(statistic(freedom), 13, None, 0.95)
    assert bonferroni == pytest.approx(float(special.stdtrit(freedom, 1 - 0.05 / 13)))
    assert many is not None
    assert bonferroni is not None
    assert alone < many < bonferroni
    closer = critical_value(statistic(freedom), 13, 0.8, 0.95)
    assert closer is not None
    assert closer < many, "what is more alike is more rarely far apart"


def test_without_a_standard_error_there_is_no_limit() -> None:
    assert critical_value(statistic(None), 3, 0.5, 0.95) is None


def normal(chance: Chance, cells: int, groups: int) -> Array:
    return chance.standard_normal((cells, groups))


@pytest.mark.parametrize("noise", [normal, cells_as_seen])
@pytest.mark.parametrize("cells", [3, 14])
def test_the_largest_statistic_keeps_below_the_limit_95_times_in_100_and_below_four_fifths_of_it_it_would_not(
    cells: int, noise: Callable[[Chance, int, int], Array]
) -> None:
    # with one variance for all cells, which the ranking does not have: what that keeps is in `test_best`
    rounds, groups = 3000, 4
    logs = noise(np.random.default_rng(4), rounds * cells, groups).reshape(rounds, cells, groups)
    logs += 0.1 * np.random.default_rng(5).standard_normal((rounds, 1, groups))  # what all of a group share
    residual = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=2, keepdims=True)
    residual += logs.mean(axis=(1, 2), keepdims=True)
    freedom = (cells - 1) * (groups - 1)
    error = np.sqrt((residual**2).sum(axis=(1, 2)) / freedom * 2 / groups)
    means = logs.mean(axis=2)
    largest = (means[:, 1:] - means[:, :1]).max(axis=1) / error
    limit = critical_value(statistic(freedom), cells - 1, 0.5, 0.95)
    assert limit is not None
    least = 0.95 - 3 * math.sqrt(0.05 * 0.95 / rounds)
    assert (largest <= 0.8 * limit).mean() < least <= (largest <= limit).mean()
