"""Dunnett's distribution against his tables, and against Student's and SciPy's."""

import numpy as np
import pytest
from scipy import special, stats

from harness.analysis.estimates.dunnett import critical_value, largest_below
from harness.analysis.estimates.intervals import LogEstimate


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
    assert largest_below(2.5, 4, correlation, freedom) == pytest.approx(there.cdf([2.5] * 4), abs=2e-3)


@pytest.mark.parametrize("freedom", [1, 3, 39])
def test_one_comparison_has_students_limit_and_many_lie_between_it_and_bonferronis(freedom: float) -> None:
    alone = float(special.stdtrit(freedom, 0.95))
    assert critical_value(statistic(freedom), 1, 0.0, 0.95) == pytest.approx(alone)
    many = critical_value(statistic(freedom), 13, 0.5, 0.95)
    bonferroni = critical_value(statistic(freedom), 13, None, 0.95)
    assert bonferroni == pytest.approx(float(special.stdtrit(freedom, 1 - 0.05 / 13)))
    assert many is not None
    assert alone < many < bonferroni
    closer = critical_value(statistic(freedom), 13, 0.8, 0.95)
    assert closer is not None
    assert closer < many, "what is more alike is more rarely far apart"


def test_without_a_standard_error_there_is_no_limit() -> None:
    assert critical_value(statistic(None), 3, 0.5, 0.95) is None
