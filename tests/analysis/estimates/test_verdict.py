"""The verdict: its margins, the order of its rules, its p-values against SciPy, and many at once."""

import math

import numpy as np
import pytest
from scipy import stats

from harness.analysis.estimates.intervals import LogEstimate, Sample, log_mean, log_ratio, stein_estimate
from harness.analysis.estimates.verdict import Judgement, Margins, blocks_needed, holm, invalid, judge, judge_all
from harness.analysis.ranking import benjamini_hochberg
from harness.errors import HarnessError, UsageError

MARGINS = Margins(0.01, 0.03)


def pairs(mean: float, deviation: float = 0.016, count: int = 12) -> LogEstimate:
    """A paired estimate with exactly this mean and standard deviation."""
    return LogEstimate(mean, deviation / math.sqrt(count), count - 1, deviation, count, "paired t")


def with_p(p_different: float) -> LogEstimate:
    """An estimate whose unadjusted p-value of |θ| ≤ δ is the given one: SE 1 %, ν = 11."""
    t = -float(stats.t.ppf(p_different / 2, 11))
    return LogEstimate(MARGINS.log_delta + t * 0.01, 0.01, 11, 0.01 * math.sqrt(12), 12, "paired t")


# margins


@pytest.mark.parametrize(
    ("delta", "epsilon", "key"),
    [
        (-0.01, 0.03, "delta"),
        (1.0, 1.0, "delta"),
        (math.nan, 0.03, "delta"),
        (math.inf, 0.03, "delta"),
        (0.01, math.nan, "epsilon"),
        (0.01, 1.5, "epsilon"),
        (0.0, 0.0, "epsilon"),
        (0.05, 0.03, "epsilon"),
    ],
)
def test_margins_that_make_no_sense_are_a_usage_error_of_one_line_that_names_the_key(
    delta: float, epsilon: float, key: str
) -> None:
    with pytest.raises(UsageError, match=f"^{key}: given .*expected") as raised:
        Margins(delta, epsilon)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_smallest_difference_of_zero_and_equal_margins_are_allowed() -> None:
    assert Margins(0.0, 0.01).log_delta == 0
    assert Margins(0.02, 0.02).log_epsilon == pytest.approx(math.log(1.02))


# one comparison, against SciPy


@pytest.mark.parametrize("seed", range(12))
def test_the_p_values_are_those_of_scipys_one_sided_t_tests(seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.normal(0.03 * (-1) ** seed, 0.02, 8)
    found = judge(log_mean(values.tolist(), "paired t"), MARGINS)
    above = stats.ttest_1samp(values, MARGINS.log_delta, alternative="greater").pvalue
    below = stats.ttest_1samp(values, -MARGINS.log_delta, alternative="less").pvalue
    assert found.p_different == pytest.approx(min(1, 2 * min(above, below)))
    over_low = stats.ttest_1samp(values, -MARGINS.log_epsilon, alternative="greater").pvalue
    under_high = stats.ttest_1samp(values, MARGINS.log_epsilon, alternative="less").pvalue
    assert found.p_equivalent == pytest.approx(max(over_low, under_high))


def test_unpaired_sides_are_judged_by_scipys_welch_test() -> None:
    chance = np.random.default_rng(4)
    a, b = chance.normal(5.0, 0.02, 7), chance.normal(5.05, 0.01, 5)
    later, earlier = Sample(tuple(b), tuple("vwxyz")), Sample(tuple(a), tuple("abcdefg"))
    found = judge(log_ratio(later, earlier), Margins(0.0, 0.03))
    assert found.p_different == pytest.approx(stats.ttest_ind(b, a, equal_var=False).pvalue)
    assert found.estimate is not None
    assert found.estimate.method == "Welch t"


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_and_intervals_say_the_same(seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.normal(chance.uniform(-0.05, 0.05), 0.02, int(chance.integers(3, 13))).tolist()
    found = judge(log_mean(values, "paired t"), MARGINS)
    wide = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    narrow = stats.ttest_1samp(values, 0).confidence_interval(0.90)
    if wide.low > MARGINS.log_delta:
        expected = "faster"
    elif wide.high < -MARGINS.log_delta:
        expected = "slower"
    elif -MARGINS.log_epsilon < narrow.low and narrow.high < MARGINS.log_epsilon:
        expected = "equivalent"
    else:
        expected = "undecided"
    assert found.verdict == expected
    assert found.ratio is not None
    assert found.ratio_90 is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx((math.exp(wide.low), math.exp(wide.high)))
    assert (found.ratio_90.low, found.ratio_90.high) == pytest.approx((math.exp(narrow.low), math.exp(narrow.high)))


# the order of the rules


def test_a_sure_difference_within_the_margin_of_equivalence_is_a_difference() -> None:
    found = judge(pairs(0.02, deviation=0.001), MARGINS)
    assert found.p_equivalent is not None
    assert found.p_equivalent < 0.05
    assert found.verdict == "faster"
    assert judge(pairs(-0.02, deviation=0.001), MARGINS).verdict == "slower"


def test_a_significant_difference_smaller_than_delta_is_equivalent_and_not_an_alarm() -> None:
    estimate = pairs(0.005, deviation=0.001)
    assert estimate.p_value() == pytest.approx(0, abs=1e-6)
    assert judge(estimate, MARGINS).verdict == "equivalent"
    assert judge(estimate, Margins(0.0, 0.03)).verdict == "faster"


def test_neither_surely_different_nor_surely_alike_is_undecided() -> None:
    found = judge(pairs(0.02, deviation=0.03), MARGINS)
    assert found.verdict == "undecided"
    assert found.p_different is not None
    assert found.p_different > 0.05


def test_the_whole_interval_must_lie_beyond_delta() -> None:
    half = float(stats.t.ppf(0.975, 11)) * 0.016 / math.sqrt(12)
    assert judge(pairs(MARGINS.log_delta + 1.001 * half), MARGINS).verdict == "faster"
    assert judge(pairs(MARGINS.log_delta + 0.999 * half), MARGINS).verdict != "faster"


def test_the_whole_90_per_cent_interval_must_lie_within_epsilon() -> None:
    half = float(stats.t.ppf(0.95, 11)) * 0.03 / math.sqrt(12)
    assert judge(pairs(MARGINS.log_epsilon - 1.001 * half, 0.03), MARGINS).verdict == "equivalent"
    assert judge(pairs(MARGINS.log_epsilon - 0.999 * half, 0.03), MARGINS).verdict == "undecided"


def test_margins_are_alike_in_both_directions() -> None:
    assert [judge(pairs(mean, 0.001), MARGINS).verdict for mean in (0.011, -0.011)] == ["faster", "slower"]
    assert [judge(pairs(mean, 0.001), MARGINS).verdict for mean in (0.009, -0.009)] == ["equivalent"] * 2


def test_a_side_that_failed_is_invalid_with_its_reason_and_no_figures() -> None:
    found = invalid("side b failed its correctness gate", MARGINS)
    assert (found.verdict, found.reason) == ("invalid", "side b failed its correctness gate")
    assert (found.estimate, found.ratio, found.p_different, found.noise) == (None, None, None, None)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_a_single_pair_is_undecided_and_says_that_it_cannot_know(ratio: float) -> None:
    found = judge(log_mean([math.log(ratio)], "paired t"), MARGINS)
    assert found.verdict == "undecided"
    assert found.reason is not None
    assert "cannot be known" in found.reason
    assert (found.p_different, found.p_equivalent, found.blocks_needed) == (None, None, None)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(ratio)
    assert not found.ratio.known


def test_pairs_without_any_spread_are_judged_by_their_mean_alone() -> None:
    means = {0.0: "equivalent", 0.02: "faster", -0.02: "slower", 0.0099: "equivalent"}
    assert {mean: judge(pairs(mean, deviation=0.0), MARGINS).verdict for mean in means} == means


def test_a_second_stage_is_judged_by_the_pilots_spread_and_degrees_of_freedom() -> None:
    values = [0.021, 0.025, 0.019, *[0.0215] * 9]
    plain, stein = judge(log_mean(values, "paired t"), MARGINS), judge(stein_estimate(values, 3), MARGINS)
    t = (np.mean(values) - MARGINS.log_delta) / (np.std(values[:3], ddof=1) / math.sqrt(12))
    assert stein.p_different == pytest.approx(2 * stats.t.sf(t, 2))
    assert plain.p_different is not None
    assert stein.p_different is not None
    assert plain.p_different < stein.p_different


@pytest.mark.parametrize(
    "broken",
    [
        LogEstimate(math.nan, 0.01, 11, 0.03, 12, "paired t"),
        LogEstimate(math.inf, 0.01, 11, 0.03, 12, "paired t"),
        LogEstimate(0.1, math.nan, 11, 0.03, 12, "paired t"),
        LogEstimate(0.1, math.inf, 11, 0.03, 12, "paired t"),
        LogEstimate(0.1, -0.01, 11, 0.03, 12, "paired t"),
        LogEstimate(0.1, 0.01, math.nan, 0.03, 12, "paired t"),
        LogEstimate(0.1, 0.01, 0, 0.03, 12, "paired t"),
        LogEstimate(-1400.0, 0.01, 11, 0.03, 12, "paired t"),
        LogEstimate(math.nan, None, None, None, 1, "none"),
    ],
    ids=lambda estimate: f"{estimate.mean} ± {estimate.standard_error}, {estimate.degrees_of_freedom}",
)
def test_an_estimate_that_is_no_number_is_an_error_and_never_a_verdict(broken: LogEstimate) -> None:
    with pytest.raises(HarnessError, match="cannot be judged"):
        judge(broken, MARGINS)
    with pytest.raises(HarnessError, match="cannot be judged"):
        judge_all([pairs(0.1), broken], MARGINS, "fdr")


# what would decide


def test_the_pairs_that_would_decide_do_decide_and_one_fewer_does_not() -> None:
    for mean in (0.0, 0.004, 0.016, 0.02, -0.02, 0.028):
        found = judge(pairs(mean, 0.05, 5), MARGINS)
        assert found.verdict == "undecided"
        assert found.blocks_needed is not None
        assert judge(pairs(mean, 0.05, found.blocks_needed), MARGINS).verdict != "undecided"
        assert judge(pairs(mean, 0.05, found.blocks_needed - 1), MARGINS).verdict == "undecided"


def test_a_decided_comparison_needs_nothing_more() -> None:
    assert judge(pairs(0.1), MARGINS).blocks_needed is None


def test_what_a_thousand_pairs_would_not_decide_is_not_promised() -> None:
    assert blocks_needed(pairs(0.01, 0.5), Margins(0.01, 0.0101)) is None


def test_without_pairs_it_says_how_many_trials_a_side_would_decide() -> None:
    spread = [-0.05, -0.02, 0.0, 0.02, 0.05]
    a = Sample(tuple(5 + value for value in spread), tuple("abcde"))
    b = Sample(tuple(4.95 + value for value in spread), tuple("vwxyz"))
    found = judge(log_ratio(b, a), MARGINS)
    assert found.verdict == "undecided"
    assert found.blocks_needed is not None
    assert 5 < found.blocks_needed < 40


# many at once


def test_holms_adjustment_is_the_worked_example() -> None:
    # 4 × 0.005, 3 × 0.01, 2 × 0.03, and 0.04 raised to its predecessor
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_benjamini_and_hochbergs_adjustment_is_the_worked_example() -> None:
    # 0.005 × 4/1, 0.01 × 4/2, 0.03 × 4/3, 0.04 × 4/4, each lowered to its successor
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert benjamini_hochberg([0.02]) == [0.02]
    assert benjamini_hochberg([]) == []


@pytest.mark.parametrize("of", [2, 3, 7, 40])
def test_benjamini_and_hochbergs_adjustment_is_scipys_to_the_last_bit_with_ties_and_without(of: int) -> None:
    for p_values in np.random.default_rng(of).random((50, of)) ** 4:
        for given in (p_values, p_values.round(1)):
            assert benjamini_hochberg(given.tolist()) == stats.false_discovery_control(given).tolist()


@pytest.mark.parametrize(
    ("correction", "verdicts"),
    [("none", ["faster"] * 4), ("fdr", ["faster"] * 4), ("holm", ["faster", "undecided", "undecided", "faster"])],
)
def test_the_correction_decides_which_of_several_comparisons_stand_out(correction: str, verdicts: list[str]) -> None:
    estimates = [with_p(p) for p in (0.01, 0.04, 0.03, 0.005)]
    found = judge_all(estimates, MARGINS, correction)  # type: ignore[arg-type]
    assert [item.verdict for item in found] == verdicts
    assert {item.comparisons for item in found} == {4}
    assert {item.correction for item in found} == {correction}


def test_adjusted_p_values_stand_in_the_judgements_in_the_order_given() -> None:
    estimates = [with_p(p) for p in (0.01, 0.04, 0.03, 0.005)]
    assert [item.p_different for item in judge_all(estimates, MARGINS, "holm")] == pytest.approx(
        [0.03, 0.06, 0.06, 0.02]
    )
    assert [item.p_different for item in judge_all(estimates, MARGINS, "fdr")] == pytest.approx(
        [0.02, 0.04, 0.04, 0.02]
    )


def test_equivalence_is_adjusted_too() -> None:
    t = float(stats.t.ppf(0.95, 11))
    just = LogEstimate(MARGINS.log_epsilon - 1.05 * t * 0.01, 0.01, 11, 0.01 * math.sqrt(12), 12, "paired t")
    far = pairs(0.5)
    assert judge(just, MARGINS).verdict == "equivalent"
    assert judge_all([just, far], MARGINS, "holm")[0].verdict == "undecided"


def test_what_cannot_be_known_is_not_counted_among_the_comparisons() -> None:
    alone = log_mean([0.5], "paired t")
    found = judge_all([with_p(0.03), alone], MARGINS, "holm")
    assert [item.verdict for item in found] == ["faster", "undecided"]
    assert found[0].comparisons == 1


def test_one_comparison_is_the_same_under_every_correction() -> None:
    for estimate in (pairs(0.0), pairs(0.02), pairs(0.1), pairs(-0.1)):
        figures = {
            (item.verdict, item.p_different, item.p_equivalent)
            for correction in ("none", "fdr", "holm")
            for item in judge_all([estimate], MARGINS, correction)
        }
        assert len(figures) == 1


def test_no_comparisons_give_no_verdicts() -> None:
    assert judge_all([], MARGINS, "fdr") == ()


def test_the_noise_is_the_deviation_of_the_pairs() -> None:
    found: Judgement = judge(pairs(0.0, 0.016), MARGINS)
    assert found.noise == 0.016
