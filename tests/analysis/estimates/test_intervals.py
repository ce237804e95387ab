"""Estimates and intervals: against SciPy, against themselves under change of unit, and by coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.analysis.estimates.intervals import (
    Interval,
    Sample,
    compare,
    log_ratio,
    pooled_deviation,
    stein_estimate,
    stein_trials,
    throughput_interval,
)
from harness.errors import HarnessError
from tests.analysis.noises import reach

STEPS = st.lists(st.floats(1e-4, 10), min_size=2, max_size=12)


def sample(steps: list[float], batch: int = 64, groups: list[str] | None = None) -> Sample:
    return Sample.of_step_times(steps, batch, groups or [f"g{index}" for index in range(len(steps))])


def test_throughput_is_the_geometric_mean_with_scipys_t_interval_of_the_logs() -> None:
    steps = [0.0101, 0.0099, 0.0104, 0.0097, 0.0102]
    found = throughput_interval(sample(steps))
    logs = np.log(steps)
    low, high = stats.t.interval(0.95, len(steps) - 1, logs.mean(), stats.sem(logs))
    assert found.value == pytest.approx(64 * math.exp(-logs.mean()))
    assert (found.low, found.high) == pytest.approx((64 * math.exp(-high), 64 * math.exp(-low)))
    assert found.method == "t"


def test_a_ratio_over_shared_groups_is_scipys_paired_t_test() -> None:
    a, b = [0.010, 0.012, 0.011, 0.0105], [0.011, 0.0125, 0.0119, 0.0117]
    found = log_ratio(sample(a), sample(b))
    expected = stats.ttest_rel(np.log(b), np.log(a))
    interval = expected.confidence_interval(0.95)
    assert found.method == "paired t"
    assert found.p_value() == pytest.approx(expected.pvalue)
    assert found.log_bounds() == pytest.approx((interval.low, interval.high))


def test_a_ratio_without_shared_groups_is_scipys_welch_test() -> None:
    a, b = [0.010, 0.012, 0.011], [0.011, 0.0125, 0.0119, 0.0117, 0.0121]
    found = log_ratio(sample(a, groups=["x", "y", "z"]), sample(b))
    expected = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.method == "Welch t"
    assert found.p_value() == pytest.approx(expected.pvalue)
    assert found.log_bounds() == pytest.approx((interval.low, interval.high))


def test_one_trial_has_a_value_and_no_interval() -> None:
    found = throughput_interval(sample([0.01]))
    assert found == Interval(pytest.approx(6400), None, None, method="none", count=1)
    assert not found.known
    assert log_ratio(sample([0.01]), sample([0.02])).p_value() is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_a_step_time_that_is_no_number_is_an_error_not_a_verdict(bad: float) -> None:
    with pytest.raises(HarnessError, match="finite"):
        sample([0.01, bad])


def test_trials_without_a_partner_are_left_out_of_a_paired_ratio() -> None:
    left = sample([0.01, 0.02, 0.03], groups=["a", "b", "c"])
    right = sample([0.01, 0.02], groups=["a", "b"])
    assert log_ratio(left, right).interval().value == pytest.approx(1.0)


def test_several_trials_in_one_group_count_as_one() -> None:
    left = sample([0.01, 0.012, 0.02], groups=["a", "a", "b"])
    assert log_ratio(left, sample([0.01, 0.02], groups=["a", "b"])).count == 2


def test_identical_trials_have_an_interval_of_no_width_and_a_sure_p() -> None:
    same, other = sample([0.01] * 3), sample([0.02] * 3)
    assert log_ratio(same, same).p_value() == 1.0
    assert log_ratio(same, other).p_value() == 0.0


def test_cells_that_never_met_are_compared_through_the_base_and_the_drift_cancels() -> None:
    drift = [0.9, 1.2, 1.0, 0.8, 1.1, 0.95]
    base_steps = [0.01 * d for d in drift]
    base = Sample.of_step_times(base_steps, 32, ["0a", "0b", "1a", "1b", "2a", "2b"], [0, 0, 1, 1, 2, 2])
    left = Sample.of_step_times([0.02 * d for d in drift[::2]], 32, ["0a", "1a", "2a"], [0, 1, 2])
    right = Sample.of_step_times([0.04 * d for d in drift[1::2]], 32, ["0b", "1b", "2b"], [0, 1, 2])
    found = compare(left, right, [base])
    assert found.method == "paired t through the base"
    assert found.interval().value == pytest.approx(2.0)
    assert found.standard_error == pytest.approx(0.0, abs=1e-12)
    assert compare(left, right).method == "Welch t"


@pytest.mark.parametrize(("shared", "through"), [(2, True), (5, True), (8, False), (12, False)])
def test_cells_that_met_in_few_of_many_groups_are_compared_through_the_base_that_was_in_all(
    shared: int, through: bool
) -> None:
    blocks = range(12)
    first, second = [f"{block}a" for block in blocks], [f"{block}{'a' if block < shared else 'b'}" for block in blocks]
    both = [(f"{block}{half}", block) for block in blocks for half in "ab"]
    base = Sample.of_step_times([0.01] * 24, 32, [group for group, _ in both], [block for _, block in both])
    left = Sample.of_step_times([0.02 + block / 1e4 for block in blocks], 32, first, list(blocks))
    found = compare(left, Sample.of_step_times([0.04] * 12, 32, second, list(blocks)), [base])
    assert found.method == ("paired t through the base" if through else "paired t")
    assert found.count == (12 if through else shared)


@given(STEPS, st.floats(1e-3, 1e3))
def test_a_change_of_unit_scales_the_interval_and_leaves_its_relative_width(steps: list[float], unit: float) -> None:
    one, other = throughput_interval(sample(steps)), throughput_interval(sample([step * unit for step in steps]))
    assert other.value * unit == pytest.approx(one.value, rel=1e-6)
    if one.known and other.known:
        assert other.relative_half_width == pytest.approx(one.relative_half_width, rel=1e-4, abs=1e-7)


@given(STEPS, st.randoms())
def test_the_order_of_blocks_is_irrelevant(steps: list[float], chance) -> None:  # type: ignore[no-untyped-def]
    names = [f"g{index}" for index in range(len(steps))]
    other = sample([step * 1.1 for step in steps[::-1]])
    order = list(range(len(steps)))
    chance.shuffle(order)
    shuffled = Sample.of_step_times([steps[i] for i in order], 64, [names[i] for i in order])
    assert log_ratio(shuffled, other).mean == pytest.approx(log_ratio(sample(steps), other).mean)


@given(STEPS)
def test_a_ratio_and_its_inverse_agree(steps: list[float]) -> None:
    left, right = sample(steps), sample([step * 1.3 for step in steps[::-1]])
    forward, back = log_ratio(left, right).interval(), log_ratio(right, left).interval().inverted()
    assert forward.value == pytest.approx(back.value)
    if forward.known:
        assert (forward.low, forward.high) == pytest.approx((back.low, back.high))


def test_intervals_cover_the_truth_as_often_as_they_say_and_a_fifth_shorter_they_would_not() -> None:
    chance = np.random.default_rng(5)
    reaches: dict[str, list[float]] = {"cell": [], "paired": [], "welch": []}
    rounds = 2000
    for _ in range(rounds):
        drift = chance.normal(0, 0.1, 4)
        a = Sample(tuple(1.0 + drift + chance.normal(0, 0.01, 4)), tuple("abcd"))
        b = Sample(tuple(0.5 + drift + chance.normal(0, 0.03, 4)), tuple("abcd"))
        c = Sample(tuple(0.5 + chance.normal(0, 0.1, 6)), tuple("uvwxyz"))
        for name, estimate, truth in (
            ("cell", log_ratio(a, Sample((0.0, 0.0, 0.0, 0.0), tuple("abcd"))), 1.0),
            ("paired", log_ratio(a, b), 0.5),
            ("welch", log_ratio(a, c), 0.5),
        ):
            reaches[name].append(reach(estimate.log_bounds(), truth))
    for name, found in reaches.items():
        assert np.mean(np.array(found) <= 0.8) < 0.935 <= np.mean(np.array(found) <= 1) <= 0.97, name


def test_steins_sample_size_is_the_formula_and_never_below_the_pilot() -> None:
    t = stats.t.ppf(0.975, 3)
    assert stein_trials(0.02, 4, 0.01) == math.ceil((t * 0.02 / 0.01) ** 2)
    assert stein_trials(0.001, 4, 0.01) == 4
    with pytest.raises(HarnessError, match="one trial"):
        stein_trials(0.02, 1, 0.01)


def test_steins_interval_keeps_the_pilots_deviation_and_degrees_of_freedom() -> None:
    values = [1.0, 1.1, 0.9, 1.05, 0.98, 1.02]
    found = stein_estimate(values, 3)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.standard_error == pytest.approx(np.std(values[:3], ddof=1) / math.sqrt(6))
    assert found.degrees_of_freedom == 2


def test_the_two_stage_procedure_reaches_its_half_width_and_covers_the_truth_as_a_fifth_shorter_would_not() -> None:
    chance = np.random.default_rng(11)
    reaches, rounds, half_width = [], 1000, 0.02
    for _ in range(rounds):
        pilot = chance.normal(1.0, 0.02, 4)
        total = stein_trials(float(pilot.std(ddof=1)), 4, half_width)
        found = stein_estimate([*pilot, *chance.normal(1.0, 0.02, total - 4)], 4)
        low, high = found.log_bounds() or (math.nan, math.nan)
        assert (high - low) / 2 <= half_width * (1 + 1e-9)
        reaches.append(reach((low, high), 1.0))
    assert np.mean(np.array(reaches) <= 0.8) < 0.935 <= np.mean(np.array(reaches) <= 1)


def test_the_pooled_deviation_weighs_by_degrees_of_freedom() -> None:
    a, b = log_ratio(sample([1.0, 1.1]), sample([1.0, 1.0])), log_ratio(sample([1.0, 1.2, 0.9]), sample([1.0] * 3))
    assert a.deviation is not None
    assert b.deviation is not None
    assert pooled_deviation([a, b]) == pytest.approx(math.sqrt((a.deviation**2 + 2 * b.deviation**2) / 3))
    assert pooled_deviation([]) is None


def test_an_interval_too_wide_for_a_float_is_unknown_rather_than_infinite() -> None:
    wide = log_ratio(Sample((0.0, 3.0), ("a", "b")), Sample((0.0, 0.0), ("a", "b")))
    assert not wide.interval(confidence=0.9999).known
