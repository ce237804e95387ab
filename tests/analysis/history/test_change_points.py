"""Change points: found where planted, not where nothing changes, and always the same."""

import math

import numpy as np
import pytest

from harness.analysis.history.change_points import FEWEST, SIGNIFICANCE, change_points
from harness.errors import HarnessError


def white(count: int, seed: int, deviation: float = 0.01) -> list[float]:
    return [float(value) for value in deviation * np.random.default_rng(seed).standard_normal(count)]


def planted(count: int, steps: dict[int, float], seed: int = 1) -> list[float]:
    return [
        value + sum(size for place, size in steps.items() if n >= place) for n, value in enumerate(white(count, seed))
    ]


def test_a_step_is_found_where_it_is() -> None:
    [change] = change_points(planted(30, {14: -0.05}))
    assert change.index == 14
    assert change.p_value <= SIGNIFICANCE


def test_a_level_that_is_left_again_is_two_changes() -> None:
    assert [change.index for change in change_points(planted(30, {10: 0.06, 20: -0.06}))] == [10, 20]


def test_a_step_at_the_end_needs_three_runs() -> None:
    assert [c.index for c in change_points(planted(30, {27: 0.2}))] == [27]
    assert change_points(planted(30, {29: 0.2})) == []


def test_white_noise_rarely_has_one() -> None:
    alarms = sum(bool(change_points(white(20, seed))) for seed in range(150))
    of_five = sum(bool(change_points(white(20, seed), 0.05)) for seed in range(150))
    # 1 % of 150, and 7 or more would happen 2 times in 1,000; of a test at 5 % there are more
    assert alarms <= 6 < of_five


def test_correlated_runs_alarm_less_than_they_would_if_taken_for_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    def correlated(seed: int) -> list[float]:
        values = white(40, seed)
        for place in range(1, 40):
            values[place] = 0.7 * values[place - 1] + math.sqrt(1 - 0.49) * values[place]
        return values

    heeded = sum(bool(change_points(correlated(seed))) for seed in range(20))
    monkeypatch.setattr("harness.analysis.history.change_points._block_length", lambda *_: 1)
    ignored = sum(bool(change_points(correlated(seed))) for seed in range(20))
    assert heeded < 0.75 * ignored


def test_few_runs_equal_runs_and_none_have_no_change() -> None:
    assert change_points([]) == []
    assert change_points([0.0] * 4 + [9.0] * (FEWEST - 5)) == []
    assert change_points([1.0] * 30) == []


def test_equal_values_with_one_jump_are_a_change() -> None:
    assert [change.index for change in change_points([1.0] * 10 + [2.0] * 10)] == [10]


def test_the_same_series_gives_the_same_answer() -> None:
    series = planted(30, {14: 0.012})
    assert change_points(series) == change_points(series)


def test_a_value_that_is_no_number_is_an_error() -> None:
    with pytest.raises(HarnessError, match="not finite"):
        change_points([1.0, math.nan] * 10)
