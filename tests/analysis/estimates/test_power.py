"""Rates with their limits, the noise floor, the smallest effect found, and false alarms without pairs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.power import (
    clopper_pearson,
    noise_floor,
    smallest_effect,
    unpaired,
    upper_limit,
)
from harness.analysis.estimates.verdict import Margins, judge
from harness.errors import HarnessError
from harness.record.validation import Rate
from tests.analysis.noises import scaled


def found(count: int, of: int = 40) -> Rate:
    return clopper_pearson(count, of)


@given(st.integers(1, 200).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_limits_of_a_rate_are_scipys_exact_ones(pair: tuple[int, int]) -> None:
    count, of = pair
    rate = clopper_pearson(count, of)
    expected = stats.binomtest(count, of).proportion_ci(0.95, method="exact")
    assert (rate.low, rate.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert (rate.count, rate.of) == pair


def test_no_alarm_in_sixty_is_at_most_4_9_per_cent() -> None:
    assert upper_limit(0, 60) == pytest.approx(1 - 0.05 ** (1 / 60))
    assert upper_limit(0, 60) == pytest.approx(0.0487, abs=1e-4)
    assert upper_limit(0, 60) < clopper_pearson(0, 60).high
    one_sided = stats.binomtest(3, 60, alternative="less").proportion_ci(0.95, method="exact")
    assert upper_limit(3, 60) == pytest.approx(one_sided.high)


def test_of_nothing_a_rate_may_be_anything() -> None:
    assert (clopper_pearson(0, 0).low, clopper_pearson(0, 0).high, upper_limit(0, 0)) == (0, 1, 1)


def test_limits_reach_zero_and_one_only_at_the_ends() -> None:
    assert clopper_pearson(0, 12).low == 0
    assert clopper_pearson(12, 12).high == 1
    assert 0 < clopper_pearson(1, 12).low < clopper_pearson(11, 12).high < 1


@pytest.mark.parametrize(("count", "of"), [(-1, 5), (6, 5), (1, 0)])
def test_a_rate_that_no_count_can_have_is_an_error(count: int, of: int) -> None:
    with pytest.raises(HarnessError, match="a rate of"):
        clopper_pearson(count, of)
    with pytest.raises(HarnessError, match="a rate of"):
        upper_limit(count, of)


def test_the_noise_floor_of_many_decisions_is_the_point_that_95_per_cent_stay_below() -> None:
    ratios = [sign * step / 1000 for step, sign in zip(range(1, 101), [1, -1] * 50, strict=True)]
    assert noise_floor(ratios) == pytest.approx(math.expm1(np.quantile(np.arange(1, 101) / 1000, 0.95)))


def test_nineteen_decisions_are_too_few_for_a_quantile() -> None:
    ratios = [0.01] * 18 + [0.05]
    normal = math.expm1(1.96 * math.sqrt((18 * 0.01**2 + 0.05**2) / 19))
    assert noise_floor(ratios) == pytest.approx(normal)
    assert noise_floor([*ratios, 0.01]) == pytest.approx(math.expm1(np.quantile([0.01] * 19 + [0.05], 0.95)))


def test_a_noise_floor_of_normal_decisions_is_about_two_deviations_by_either_way() -> None:
    chance = np.random.default_rng(3)
    many = noise_floor(chance.normal(0, 0.01, 5000).tolist())
    few = [noise_floor(chance.normal(0, 0.01, 15).tolist()) for _ in range(200)]
    assert many == pytest.approx(0.0198, rel=0.05)
    assert np.mean([value for value in few if value is not None]) == pytest.approx(0.0198, rel=0.05)


def test_one_decision_has_no_noise_floor() -> None:
    assert noise_floor([]) is None
    assert noise_floor([0.01]) is None
    assert noise_floor([0.0, 0.0]) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_noise_floor_with_a_value_that_is_no_number_is_an_error(bad: float) -> None:
    with pytest.raises(HarnessError, match="expected a finite number"):
        noise_floor([0.01, bad, 0.02])


@pytest.mark.parametrize("deviation", [0.008, 0.022])
def test_the_smallest_effect_is_called_slower_nine_times_in_ten_and_by_intervals_a_fifth_shorter_more_often(
    deviation: float,
) -> None:
    effect = smallest_effect(deviation, 12, 0.01)
    assert effect is not None
    chance = np.random.default_rng(17)
    drawn = chance.normal(math.log1p(effect), deviation, (4000, 12))
    half = stats.t.ppf(0.975, 11) * drawn.std(axis=1, ddof=1) / math.sqrt(12)
    called, by_shorter = ((drawn.mean(axis=1) - times * half > math.log1p(0.01)).mean() for times in (1, 0.8))
    assert 0.88 <= called <= 0.92 < by_shorter


def test_more_noise_fewer_pairs_and_a_larger_margin_each_want_a_larger_effect() -> None:
    usual = smallest_effect(0.01, 12, 0.01)
    assert usual is not None
    for worse in (smallest_effect(0.02, 12, 0.01), smallest_effect(0.01, 6, 0.01), smallest_effect(0.01, 12, 0.02)):
        assert worse is not None
        assert worse > usual
    assert smallest_effect(0.0, 12, 0.01) == pytest.approx(0.01)
    assert smallest_effect(0.01, 1, 0.01) is None


@pytest.mark.parametrize("deviation", [0.003, 0.008, 0.02])
def test_with_looks_the_smallest_effect_is_called_slower_nine_times_in_ten_and_a_smaller_one_is_not(
    deviation: float,
) -> None:
    looks, margins, chance = Looks.planned((5, 8, 12)), Margins(0.01, 0.03), np.random.default_rng(23)

    def slower(row: list[float]) -> bool:
        stops = (number for number, after in enumerate(looks.after, 1) if looks.stops(row[:after], number, margins))
        number = next(stops, len(looks.after))
        return judge(looks.estimate(row[: looks.after[number - 1]], number), margins).verdict == "slower"

    def called_slower(effect: float) -> float:
        rows = chance.normal(-math.log1p(effect), deviation, (1000, 12)).tolist()
        return float(np.mean([slower(row) for row in rows]))

    by_last = smallest_effect(deviation, 12, 0.01, level=looks.different[-1])
    effect = smallest_effect(deviation, 12, 0.01, level=looks.different[-1], least=margins.epsilon)
    assert by_last is not None
    assert effect == max(by_last, 0.03)
    assert called_slower(effect) >= 0.87
    if by_last < 0.03:
        assert called_slower(by_last) < 0.6, "most end as equivalent at an early look"


def test_the_later_is_compared_with_the_earlier_one_pair_at_a_time() -> None:
    result = unpaired([((10.0, 10.001), (10.52, 10.521)), ((15.0, 15.001, 15.002), (15.601, 15.601))], 0.01)
    assert result is not None
    assert result.floor == pytest.approx(noise_floor((0.52, 0.6)))
    assert result.false_alarms.of == 2


def test_a_machine_that_changed_between_two_decisions_raises_false_alarms_without_pairs() -> None:
    chance = np.random.default_rng(8)
    still = [tuple(tuple(chance.normal(10, 0.01, 8).tolist()) for _ in "ab") for _ in range(400)]
    shorter = [tuple(tuple(scaled(side, 0.8)) for side in sides) for sides in still]
    wandering = [
        tuple(tuple(speed + chance.normal(0, 0.01, 8)) for speed in chance.normal(10, 0.1, 2)) for _ in range(50)
    ]
    calm, by_shorter, rough = (unpaired(met, 0.0) for met in (still, shorter, wandering))  # type: ignore[arg-type]
    assert calm is not None
    assert by_shorter is not None
    assert rough is not None
    assert calm.false_alarms.low <= 0.05 <= calm.false_alarms.high
    assert by_shorter.false_alarms.low > 0.05, "as intervals a fifth shorter would"
    assert rough.false_alarms.low > 0.5
    assert calm.floor is not None
    assert rough.floor is not None
    assert rough.floor > 10 * calm.floor


def test_a_wide_margin_takes_the_false_alarms_away() -> None:
    met = [((10.0, 10.0001), (10.02, 10.0201))]
    strict, wide = unpaired(met, 0.01), unpaired(met, 0.04)
    assert strict is not None
    assert wide is not None
    assert (strict.false_alarms.count, wide.false_alarms.count) == (1, 0)


def test_sides_of_a_single_trial_are_left_out() -> None:
    one, two = (10.0,), (10.0, 10.1)
    assert unpaired([(one, two)], 0.01) is None
    assert unpaired([(two, one)], 0.01) is None
    assert unpaired([], 0.01) is None
    result = unpaired([(one, two), (two, two)], 0.01)
    assert result is not None
    assert result.false_alarms.of == 1
    assert result.floor is None


def test_a_throughput_that_is_no_number_is_an_error_and_no_rate() -> None:
    good = (10.0, 10.1)
    with pytest.raises(HarnessError, match="cannot be averaged or compared"):
        unpaired([((math.nan, 10.0), good)], 0.01)
