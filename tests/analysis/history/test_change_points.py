"""Change points: found where planted, not where nothing changes, and always the same."""

import math
from typing import Any

import numpy as np
import pytest

from harness.analysis.history.change_points import FEWEST, SIGNIFICANCE, WINDOW, change_points
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


def test_of_many_runs_steps_are_found_at_their_places_wherever_windows_begin() -> None:
    steps = {40: 0.06, 99: -0.06, 150: 0.06, 297: 0.2}
    assert [change.index for change in change_points(planted(300, steps))] == list(steps)
    assert [change.index for change in change_points(planted(300, {125: 0.06}))] == [125]


def test_the_cost_of_many_runs_grows_with_their_number_and_no_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def look(part: Any, _: object) -> tuple[int, float]:
        looked_at.append(len(part))
        return 3, 1.0

    monkeypatch.setattr("harness.analysis.history.change_points._best_split", look)
    for count in (WINDOW, 3 * WINDOW, 6 * WINDOW):
        looked_at.clear()
        change_points(white(count, 1))
        assert looked_at == [WINDOW] * (2 * count // WINDOW - 1)


def test_white_noise_of_many_runs_is_no_more_often_marked_than_that_of_few() -> None:
    alarms = sum(bool(change_points(white(250, seed))) for seed in range(30))
    assert alarms <= 2  # 1 % of 30: 3 or more would happen 3 times in 1,000


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
