"""False alarms of a history, counted on series drawn from its own scatter."""

import functools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from harness.analysis.history.change_points import SIGNIFICANCE, change_points
from harness.analysis.history.false_alarms import LONGEST, _left_over, false_alarms, marked
from harness.analysis.history.series import history
from tests.histories import nights


def test_a_step_is_marked_where_it_is_and_one_below_the_smallest_change_is_not() -> None:
    noise = np.random.default_rng(1).normal(0, 0.001, 20)
    for size, expected in ((0.05, [12]), (0.005, [])):
        values = noise + np.where(np.arange(20) < 12, 0.0, size)
        assert marked([float(value) for value in values]) == expected


def test_the_rate_is_about_what_the_test_promises_and_the_same_each_time_and_a_laxer_test_has_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # runs scatter so much that the smallest change that is marked at all keeps no alarm away
    series = history(nights(12, drift=0.1))
    alarms = false_alarms(series, 100)
    assert alarms == false_alarms(series, 100)
    lax = functools.partial(change_points, significance=10 * SIGNIFICANCE)
    monkeypatch.setattr("harness.analysis.history.false_alarms.change_points", lax)
    laxer = false_alarms(series, 100)
    assert alarms is not None
    assert laxer is not None
    assert alarms.of == 100
    assert alarms.low <= SIGNIFICANCE <= alarms.high
    assert laxer.low > SIGNIFICANCE


def test_a_step_in_the_runs_themselves_is_no_part_of_their_scatter() -> None:
    stepped = history(nights(14, slower_from=7))
    found = false_alarms(stepped, 100)
    assert found is not None
    assert found.low <= SIGNIFICANCE
    flat = {(one.cell, one.measure): deviation(_left_over(one)) for one in history(nights(14))}
    with_step = [one for one in stepped if one.changes]
    assert with_step
    for one in with_step:
        assert deviation(_left_over(one)) < 1.5 * flat[one.cell, one.measure]
        assert deviation([math.log(point.value.value) for point in one.points]) > 3 * flat[one.cell, one.measure], (
            "were it left in"
        )


def deviation(values: Sequence[float]) -> float:
    return float(np.std(values))


def test_too_few_runs_give_no_rate() -> None:
    assert false_alarms(history(nights(8))) is None
    assert false_alarms(()) is None
    assert LONGEST >= 9
