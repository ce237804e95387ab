"""Sides: records that contradict themselves, and the log ratio of sides that never met."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.comparison import compare_along, compare_runs
from harness.analysis.estimates.intervals import LogEstimate, Sample, log_mean, own_estimate, stein_estimate, welch
from harness.analysis.estimates.verdict import Margins
from harness.errors import StorageError
from harness.record import TrialRecord
from tests.analysis.noises import reach
from tests.comparisons import pair_of_runs, scaled, sweep_run
from tests.synthetic import make_cell

MARGINS = Margins()
OPS = [make_cell(), *(make_cell("mirrored", 2, op=op) for op in ("hierarchical_copy", "auto", "nccl"))]


def test_a_record_that_was_copied_or_edited_is_an_error_and_never_a_verdict() -> None:
    a, b = pair_of_runs()
    copied = replace(b, trials=[*b.trials, b.trials[0]])
    with pytest.raises(StorageError, match="2 good trials of one cell"):
        compare_runs(a, copied, MARGINS)
    for changed in ({"step_time_s": 0.001}, {"throughput_examples_per_s": 1e6}):
        edited = replace(b, trials=[b.trials[0].model_copy(update=changed), *b.trials[1:]])
        with pytest.raises(StorageError, match=f"{next(iter(changed))} is .* the record was edited"):
            compare_runs(a, edited, MARGINS)
    with pytest.raises(StorageError, match="the record was edited"):
        compare_along(edited, "strategy", MARGINS)


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_a_figure_that_is_no_positive_number_is_never_a_verdict(value: float) -> None:
    a, b = pair_of_runs()
    broken = replace(b, trials=[b.trials[0].model_copy(update={"step_time_s": value}), *b.trials[1:]])
    with pytest.raises(StorageError, match="the record was edited"):
        compare_runs(a, broken, MARGINS)


def test_welch_after_a_second_stage_keeps_each_sides_own_pilot() -> None:
    a = Sample((0.0, 0.1, 0.05, 0.5), tuple("abcd"), (0, 1, 2, 3))
    b = Sample((1.0, 1.2, 1.1), tuple("efg"), (0, 1, 2))
    estimate = welch(own_estimate(b, None), own_estimate(a, 3))
    pilot = stein_estimate(a.values, 3)
    assert pilot.standard_error is not None
    assert estimate.standard_error == pytest.approx(math.hypot(pilot.standard_error, np.std(b.values, ddof=1) / 3**0.5))
    assert estimate.mean == pytest.approx(1.1 - 0.1625)


def test_welch_of_two_stage_sides_covers_the_truth_95_times_in_100_and_a_fifth_shorter_would_not() -> None:
    chance = np.random.default_rng(4)
    reaches, rounds = [], 3000
    for _ in range(rounds):
        sides = []
        for spread in (0.01, 0.03):
            pilot = list(chance.normal(0.0, spread, 5))
            more = min(20, max(5, math.ceil(float(np.std(pilot, ddof=1)) / 0.004)))  # from the pilot's spread alone
            sides.append(stein_estimate([*pilot, *chance.normal(0.0, spread, more)], 5))
        reaches.append(reach(welch(*sides).log_bounds(), 0.0))
    assert np.mean(np.array(reaches) <= 0.8) < 0.93 <= np.mean(np.array(reaches) <= 1) <= 0.98


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.lists(st.floats(-1, 1), min_size=2, max_size=6))
@settings(max_examples=60)
def test_welch_is_antisymmetric_and_shifts_with_either_side(left: list[float], right: list[float]) -> None:
    def of(values: list[float], shift: float = 0.0) -> LogEstimate:
        return log_mean([value + shift for value in values], "t")

    there, back = welch(of(right), of(left)), welch(of(left), of(right))
    assert there.mean == pytest.approx(-back.mean)
    assert there.standard_error == pytest.approx(back.standard_error)
    shifted = welch(of(right, 0.5), of(left))
    assert shifted.mean == pytest.approx(there.mean + 0.5)
    assert shifted.standard_error == pytest.approx(there.standard_error, rel=1e-6, abs=1e-9)


def test_a_side_of_one_trial_has_no_interval_under_welch() -> None:
    one = LogEstimate(0.1, None, None, None, 1, "none")
    many = LogEstimate(0.0, 0.01, 4, 0.02, 5, "t")
    assert welch(one, many).standard_error is None


def test_a_scaled_record_is_still_a_valid_record() -> None:
    run = sweep_run("run-a", blocks=1)
    for trial in run.trials:
        TrialRecord.model_validate(scaled(trial, 1.3, 0.7).model_dump())
