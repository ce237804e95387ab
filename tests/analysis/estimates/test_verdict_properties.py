"""Properties of the verdict that hold whatever the estimate is: what may change it, and what may not (hypothesis)."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.estimates.intervals import LogEstimate, log_mean
from harness.analysis.estimates.verdict import Judgement, Margins, judge, judge_all

DECIDED = ("faster", "slower", "equivalent")
MEANS, DEVIATIONS = st.floats(-0.1, 0.1), st.floats(0, 0.05)
MARGINS = st.tuples(st.floats(0, 0.04), st.floats(0.001, 0.08)).map(lambda pair: Margins(min(pair), max(pair)))


def _exactly(mean: float, deviation: float, count: int) -> LogEstimate:
    return LogEstimate(mean, deviation / math.sqrt(count), count - 1, deviation, count, "paired t")


ESTIMATES = st.builds(_exactly, MEANS, DEVIATIONS, st.integers(2, 40))


@given(st.floats(-1, 1), MARGINS, st.sampled_from(["none", "fdr", "holm"]))
def test_one_pair_never_decides_and_says_that_it_cannot_know(difference: float, margins: Margins, how: str) -> None:
    found = judge_all([log_mean([difference], "paired t")], margins, how)[0]  # type: ignore[arg-type]
    assert found.verdict == "undecided"
    assert found.reason is not None
    assert "cannot be known" in found.reason


@given(ESTIMATES, MARGINS, st.floats(0, 0.1), st.floats(0, 0.1))
def test_wider_margins_never_turn_equivalent_into_something_else(
    estimate: LogEstimate, margins: Margins, delta: float, epsilon: float
) -> None:
    wider = Margins(margins.delta + delta, max(margins.epsilon + epsilon, margins.delta + delta))
    if judge(estimate, margins).verdict == "equivalent":
        assert judge(estimate, wider).verdict == "equivalent"


@given(ESTIMATES, MARGINS, st.floats(0, 1))
def test_a_smaller_delta_never_takes_a_difference_away(estimate: LogEstimate, margins: Margins, part: float) -> None:
    before = judge(estimate, margins).verdict
    if before in ("faster", "slower"):
        assert judge(estimate, Margins(margins.delta * part, margins.epsilon)).verdict == before


@given(ESTIMATES, MARGINS, st.floats(1, 2))
def test_a_larger_difference_in_the_same_direction_stays_one(
    estimate: LogEstimate, margins: Margins, times: float
) -> None:
    before = judge(estimate, margins).verdict
    if before in ("faster", "slower"):
        assert judge(replace(estimate, mean=estimate.mean * times), margins).verdict == before


@given(MEANS, DEVIATIONS, st.integers(2, 40), st.integers(1, 40), MARGINS)
def test_more_pairs_of_the_same_mean_and_spread_never_lose_a_decision(
    mean: float, deviation: float, count: int, more: int, margins: Margins
) -> None:
    before, after = (judge(_exactly(mean, deviation, pairs), margins).verdict for pairs in (count, count + more))
    if before in ("faster", "slower"):
        assert after == before
    if before == "equivalent":
        assert after in DECIDED


@given(MEANS, DEVIATIONS, st.floats(1, 3), st.integers(2, 40), MARGINS)
def test_more_spread_never_makes_a_difference(
    mean: float, deviation: float, times: float, count: int, margins: Margins
) -> None:
    calm, rough = (judge(_exactly(mean, value, count), margins).verdict for value in (deviation, deviation * times))
    if rough in ("faster", "slower"):
        assert calm == rough
    if calm == "undecided":
        assert rough == "undecided"


@given(st.lists(st.tuples(st.floats(-0.1, 0.1), st.floats(0.001, 0.1)), min_size=1, max_size=10), MARGINS)
def test_a_correction_only_ever_takes_certainty_away(figures: list[tuple[float, float]], margins: Margins) -> None:
    estimates = [_exactly(mean, deviation, 8) for mean, deviation in figures]
    plain, fdr, holm = (judge_all(estimates, margins, how) for how in ("none", "fdr", "holm"))
    for loose, middle, strict in zip(plain, fdr, holm, strict=True):
        assert _p(loose) <= _p(middle) * (1 + 1e-12)
        assert _p(middle) <= _p(strict) * (1 + 1e-12)
        if strict.verdict in ("faster", "slower"):
            assert loose.verdict == middle.verdict == strict.verdict


@given(st.floats(-0.1, 0.1), st.floats(0.001, 0.1), st.integers(2, 40), MARGINS)
def test_a_difference_is_called_only_when_its_interval_lies_beyond_delta(
    mean: float, deviation: float, count: int, margins: Margins
) -> None:
    found = judge(_exactly(mean, deviation, count), margins)
    assert found.ratio is not None
    if not found.ratio.known:
        return
    assert found.ratio.low is not None
    assert found.ratio.high is not None
    if found.verdict == "faster":
        assert found.ratio.low >= (1 + margins.delta) * (1 - 1e-9)
    if found.verdict == "slower":
        assert found.ratio.high <= 1 / (1 + margins.delta) * (1 + 1e-9)


def _p(found: Judgement) -> float:
    assert found.p_different is not None
    return found.p_different
