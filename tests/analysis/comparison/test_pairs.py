"""Pairs of trials that took turns, how many of them are wanted, and the estimate from both stages."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.analysis.comparison.pairs import Pair, blocks_wanted, estimate_of, pairs_of, pilot_count, took_turns
from harness.errors import HarnessError
from harness.record import TrialRecord
from tests.record.examples import failed_trial, trial

SPREAD = [0.012, -0.011, 0.004, -0.013, 0.009, -0.001]
FINITE = st.lists(st.floats(-0.2, 0.2).map(lambda value: round(value, 6)), min_size=2, max_size=12)


def side(name: str, block: int = 0, group: str | None = None, speed: float = 1.0, **changes: object) -> TrialRecord:
    """A good trial; `speed` times as fast as another."""
    place = {"side": name, "group": f"g{block}" if group is None else group}
    return trial(block, throughput_examples_per_s=1000.0 * speed, **{**place, **changes})


def blocks(pairs: Sequence[Pair]) -> list[int]:
    return [pair.block for pair in pairs]


def test_a_pair_is_two_good_trials_of_one_group() -> None:
    good = [side("a", 0), side("b", 0), side("a", 1), side("b", 1)]
    alone = [side("a", 2), side("b", 3)]
    parted = [side("a", 4, "one"), side("b", 4, "two")]
    crashed = [side("a", 5), failed_trial(5, side="b", group="g5")]
    pairs = pairs_of([*good, *alone, *parted, *crashed])
    assert blocks(pairs) == [0, 1]
    assert [(pair.a.side, pair.b.side) for pair in pairs] == [("a", "b")] * 2


def test_pairs_come_in_the_order_of_their_blocks_however_the_trials_ended() -> None:
    trials = [side(name, block) for block in (3, 0, 2, 1) for name in ("b", "a")]
    assert blocks(pairs_of(trials)) == [0, 1, 2, 3]


def test_any_two_arms_can_be_paired() -> None:
    trials = [side(name, block) for block in range(3) for name in ("a", "again", "c", "slow")]
    assert blocks(pairs_of(trials, "a", "slow")) == [0, 1, 2]
    assert {(pair.a.side, pair.b.side) for pair in pairs_of(trials, "c", "again")} == {("c", "again")}
    assert pairs_of(trials, "a", "nobody") == ()


def test_a_block_that_ran_twice_gives_its_later_pair_and_no_other() -> None:
    first = [side("a", 0, "x", attempt=1), side("b", 0, "x", 2.0, attempt=1)]
    later = [side("a", 0, "y", attempt=2), side("b", 0, "y", 1.0, attempt=2)]
    for trials in ([*first, *later], [*later, *first]):
        [pair] = pairs_of(trials)
        assert (pair.a.group, pair.wall) == ("y", 0.0)


def test_the_difference_is_the_log_of_the_ratio_of_throughputs_b_over_a() -> None:
    [pair] = pairs_of([side("a"), side("b", speed=1.05)])
    assert pair.wall == pytest.approx(math.log(1.05))


def test_processor_time_counts_the_other_way_and_only_where_both_sides_have_it() -> None:
    a, b = side("a", cpu_seconds_per_example=0.002), side("b", cpu_seconds_per_example=0.001)
    assert Pair(a, b).cpu == pytest.approx(math.log(2))
    for nothing in (None, 0.0):
        assert Pair(a, b.model_copy(update={"cpu_seconds_per_example": nothing})).cpu is None
        assert Pair(a.model_copy(update={"cpu_seconds_per_example": nothing}), b).cpu is None


def test_two_sides_took_turns_when_a_group_has_both_and_neither_was_interrupted() -> None:
    a, b = side("a"), side("b")
    crashed = failed_trial(side="b", group="g0")
    stopped = failed_trial(side="b", group="g0", status="interrupted")
    sides = [("a", "b")]
    assert took_turns([a, b], sides)
    assert took_turns([a, crashed], sides)
    assert not took_turns([a, stopped], sides)
    assert not took_turns([a], sides)
    assert not took_turns([a, side("b", group="other")], sides)
    assert not took_turns([a, b], [*sides, ("a", "c")])
    assert took_turns([a, b, side("a", group="other"), side("c", group="other")], [*sides, ("a", "c")])


# how many


def test_the_number_of_blocks_is_steins() -> None:
    deviation = float(np.std(SPREAD, ddof=1))
    for half_width in (0.006, 0.008, 0.01):
        needed = math.ceil((float(stats.t.ppf(0.975, 5)) * deviation / half_width) ** 2)
        assert needed > 6
        assert blocks_wanted(SPREAD, half_width, 1000) == needed


def test_no_fewer_blocks_than_the_pilot_and_no_more_than_the_most() -> None:
    assert blocks_wanted(SPREAD, 0.5, 12) == 6
    assert blocks_wanted([0.01] * 6, 0.001, 12) == 6
    assert blocks_wanted(SPREAD, 0.0001, 12) == 12
    assert blocks_wanted(SPREAD, 0.0001, 4) == 6  # a pilot that has run has run


def test_one_pair_has_no_spread_to_plan_from() -> None:
    assert blocks_wanted([0.4], 0.001, 12) == 1


@given(FINITE, st.floats(-3, 3))
def test_the_number_of_blocks_does_not_depend_on_the_mean(values: list[float], shift: float) -> None:
    shift = round(shift, 3)
    halves = (0.0071, 0.013, 0.0317)  # so that rounding of the shifted values does not meet an edge
    for half in halves:
        one, two = (blocks_wanted(moved, half, 10**6) for moved in (values, [value + shift for value in values]))
        assert abs(one - two) <= 1 + 1e-9 * one


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_an_error_and_never_a_plan_or_an_estimate(bad: float) -> None:
    with pytest.raises(HarnessError):
        blocks_wanted([*SPREAD, bad], 0.01, 12)
    with pytest.raises(HarnessError):
        estimate_of([*SPREAD, bad], None)
    with pytest.raises(HarnessError):
        estimate_of([*SPREAD, bad], 6)


# both stages


def test_after_a_second_stage_the_pilots_deviation_and_freedom_stay() -> None:
    values = [*SPREAD, 0.2, -0.2]
    estimate = estimate_of(values, 6)
    assert (estimate.method, estimate.count, estimate.degrees_of_freedom) == ("Stein t", 8, 5)
    assert estimate.deviation == pytest.approx(float(np.std(SPREAD, ddof=1)))
    assert estimate.standard_error == pytest.approx(float(np.std(SPREAD, ddof=1)) / math.sqrt(8))
    assert estimate.mean == pytest.approx(float(np.mean(values)))


@pytest.mark.parametrize("pilot", [None, 6, 1, 0])
def test_without_a_second_stage_it_is_the_paired_t_of_all(pilot: int | None) -> None:
    estimate = estimate_of(SPREAD, pilot)
    expected = stats.ttest_1samp(SPREAD, 0.0).confidence_interval(0.95)
    assert estimate.method == "paired t"
    assert estimate.log_bounds() == pytest.approx((expected.low, expected.high))


def test_the_pilot_are_the_pairs_of_blocks_outside_the_second_stage() -> None:
    pairs = pairs_of([side(name, block) for block in (0, 1, 3, 6, 7) for name in ("a", "b")])
    assert pilot_count(pairs, {6, 7, 8}) == 3
    assert pilot_count(pairs, set()) is None
