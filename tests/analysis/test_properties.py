"""Properties of the estimators, and of the verdict on them, that hold whatever was measured (hypothesis).

Series are drawn as a machine gives them: a drift common to the block, a deviation of each trial, a factor
between the sides. Where a verdict is compared with another one, cases within a rounding error of a
margin are left out (`steady`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.analysis.estimates.intervals import (
    LogEstimate,
    Sample,
    cell_estimate,
    compare,
    log_mean,
    log_ratio,
    stein_estimate,
)
from harness.analysis.estimates.verdict import Margins, Verdict, judge
from harness.errors import HarnessError
from harness.record.trial import TrialRecord, Windows
from tests.record.examples import trial

BATCH = 64
DRIFT, OWN = st.floats(-0.2, 0.2), st.floats(-0.02, 0.02)
BAD = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.01])
MARGINS = st.tuples(st.floats(0, 0.04), st.floats(0.001, 0.08)).map(lambda pair: Margins(min(pair), max(pair)))
QUICK = settings(max_examples=40)
"""Drawing a series costs more than judging it."""
OPPOSITE: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}


@dataclass(frozen=True)
class Steps:
    """Step times in seconds, block by block: both sides, and the base case beside either."""

    a: list[float]
    b: list[float]
    base_a: list[float]
    base_b: list[float]

    def changed(self, a: Callable[[list[float]], list[float]], b: Callable[[list[float]], list[float]]) -> "Steps":
        """The same with each side's own series changed."""
        return Steps(a(self.a), b(self.b), a(self.base_a), b(self.base_b))


@st.composite
def series(draw: st.DrawFn, least: int = 2) -> Steps:
    """Two sides over 2 to 12 blocks, B up to 8 % faster or slower."""
    blocks = draw(st.integers(least, 12))
    numbers = {name: draw(st.lists(DRIFT, min_size=blocks, max_size=blocks)) for name in ("first", "second")}
    own = {name: draw(st.lists(OWN, min_size=blocks, max_size=blocks)) for name in ("a", "b", "base_a", "base_b")}
    factor = draw(st.floats(-0.08, 0.08))

    def steps(name: str, drift: str, shift: float) -> list[float]:
        pairs = zip(numbers[drift], own[name], strict=True)
        return [0.01 * math.exp(common + deviation + shift) for common, deviation in pairs]

    return Steps(
        steps("a", "first", 0), steps("b", "first", factor), steps("base_a", "first", 0), steps("base_b", "second", 0)
    )


def paired(steps: Steps) -> LogEstimate:
    """B over A within the groups."""
    return log_ratio(_sample(steps.b, "g"), _sample(steps.a, "g"))


def welch(steps: Steps) -> LogEstimate:
    """B over A, never alive together."""
    return log_ratio(_sample(steps.b, "b"), _sample(steps.a, "a"))


def through_the_base(steps: Steps) -> LogEstimate:
    """B over A in two groups a block, the base case in both."""
    blocks = range(len(steps.a))
    names = [f"first{block}" for block in blocks] + [f"second{block}" for block in blocks]
    base = Sample.of_step_times(steps.base_a + steps.base_b, BATCH, names, [*blocks, *blocks])
    b = Sample.of_step_times(steps.b, BATCH, names[len(blocks) :], list(blocks))
    return compare(b, Sample.of_step_times(steps.a, BATCH, names[: len(blocks)], list(blocks)), [base])


def stein(steps: Steps) -> LogEstimate:
    """B over A in pairs, of which the first half (at least two) were the pilot."""
    a, b = _sample(steps.a, "g").values, _sample(steps.b, "g").values
    differences = [of_b - of_a for of_a, of_b in zip(a, b, strict=True)]
    return stein_estimate(differences, max(2, len(differences) // 2))


RATIOS = pytest.mark.parametrize("estimate", [paired, welch, through_the_base, stein])
Estimator = Callable[[Steps], LogEstimate]


def _sample(steps: Sequence[float], prefix: str) -> Sample:
    return Sample.of_step_times(steps, BATCH, [f"{prefix}{index}" for index in range(len(steps))])


def same(one: LogEstimate, other: LogEstimate) -> bool:
    """Equal but for rounding."""
    assert one.standard_error is not None
    assert other.standard_error is not None
    close = math.isclose(one.mean, other.mean, abs_tol=1e-9)
    return close and math.isclose(one.standard_error, other.standard_error, rel_tol=1e-6, abs_tol=1e-9)


def steady(estimate: LogEstimate, margins: Margins) -> Verdict:
    """The verdict, where it does not hang on a rounding error; other cases are not looked at."""
    deltas = [max(0.0, margins.delta - 1e-6), margins.delta + 1e-6]
    epsilons = [margins.epsilon - 1e-6, margins.epsilon + 1e-6]
    near = {judge(estimate, Margins(d, max(d, e))).verdict for d in deltas for e in epsilons}
    assume(len(near) == 1)
    return near.pop()


# shift, scale, swap, order


@RATIOS
@QUICK
@given(series(), st.floats(1e-3, 1e3), MARGINS)
def test_scaling_both_sides_changes_nothing(estimate: Estimator, steps: Steps, unit: float, margins: Margins) -> None:
    def scale(values: list[float]) -> list[float]:
        return [value * unit for value in values]

    one, other = estimate(steps), estimate(steps.changed(scale, scale))
    assert same(one, other)
    assert judge(other, margins).verdict == steady(one, margins)


@RATIOS
@QUICK
@given(series(), MARGINS)
def test_swapping_the_sides_inverts_the_ratio_and_the_verdict(
    estimate: Estimator, steps: Steps, margins: Margins
) -> None:
    swapped = estimate(Steps(steps.b, steps.a, steps.base_b, steps.base_a))
    expected = steady(estimate(steps), margins)
    forward, back = judge(estimate(steps), margins), judge(swapped, margins)
    assert back.verdict == OPPOSITE.get(expected, expected)
    assert forward.ratio is not None
    assert back.ratio is not None
    inverted = back.ratio.inverted()
    assert (forward.ratio.value, forward.ratio.low, forward.ratio.high) == pytest.approx(
        (inverted.value, inverted.low, inverted.high)
    )


@pytest.mark.parametrize("estimate", [paired, welch, stein])
@QUICK
@given(series(), st.floats(0.2, 5))
def test_a_factor_on_b_shifts_the_estimate_by_its_logarithm_and_leaves_its_error(
    estimate: Estimator, steps: Steps, factor: float
) -> None:
    one = estimate(steps)
    other = estimate(Steps(steps.a, [value * factor for value in steps.b], steps.base_a, steps.base_b))
    assert other.mean == pytest.approx(one.mean - math.log(factor), abs=1e-9)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-6, abs=1e-9)


@QUICK
@given(series(), st.floats(0.2, 5))
def test_through_the_base_only_what_b_alone_does_counts(steps: Steps, factor: float) -> None:
    one = through_the_base(steps)
    b_alone = Steps(steps.a, [value * factor for value in steps.b], steps.base_a, steps.base_b)
    its_group = Steps(b_alone.a, b_alone.b, steps.base_a, [value * factor for value in steps.base_b])
    assert through_the_base(b_alone).mean == pytest.approx(one.mean - math.log(factor), abs=1e-9)
    assert same(through_the_base(its_group), one)


@pytest.mark.parametrize("estimate", [paired, welch, through_the_base])
@QUICK
@given(st.data(), series())
def test_the_order_of_blocks_does_not_matter(estimate: Estimator, data: st.DataObject, steps: Steps) -> None:
    order = data.draw(st.permutations(range(len(steps.a))))

    def shuffled(values: list[float]) -> list[float]:
        return [values[place] for place in order]

    assert same(estimate(steps.changed(shuffled, shuffled)), estimate(steps))
    assert same(cell_estimate(_sample(shuffled(steps.a), "g")), cell_estimate(_sample(steps.a, "g")))


@QUICK
@given(st.data(), series(least=4))
def test_the_order_within_either_stage_does_not_matter_to_steins_estimate(data: st.DataObject, steps: Steps) -> None:
    values = [math.log(a / b) for a, b in zip(steps.a, steps.b, strict=True)]
    pilot = data.draw(st.integers(2, len(values) - 2))
    first = data.draw(st.permutations(values[:pilot]))
    second = data.draw(st.permutations(values[pilot:]))
    assert same(stein_estimate([*first, *second], pilot), stein_estimate(values, pilot))


@given(st.lists(OWN, min_size=6, max_size=6, unique=True))
def test_which_values_are_the_pilot_does_matter_to_steins_estimate(values: list[float]) -> None:
    pilot, rest = values[:3], values[3:]
    assume(abs(_spread(pilot) - _spread(rest)) > 1e-6)
    assert not same(stein_estimate(pilot + rest, 3), stein_estimate(rest + pilot, 3))


def _spread(values: list[float]) -> float:
    return log_mean(values, "t").deviation or 0.0


@QUICK
@given(series())
def test_a_drift_that_the_sides_share_is_no_part_of_a_paired_difference(steps: Steps) -> None:
    weather = [1 + 0.5 * (index % 3) for index in range(len(steps.a))]

    def rough(values: list[float]) -> list[float]:
        return [value * factor for value, factor in zip(values, weather, strict=True)]

    assert same(paired(steps.changed(rough, rough)), paired(steps))


# errors are never verdicts


@RATIOS
@QUICK
@given(st.data(), series(), BAD)
def test_a_step_time_that_is_no_time_is_an_error_and_never_a_verdict(
    estimate: Estimator, data: st.DataObject, steps: Steps, bad: float
) -> None:
    side = data.draw(st.sampled_from(["a", "b"]))
    place = data.draw(st.integers(0, len(steps.a) - 1))
    values = list(getattr(steps, side))
    values[place] = bad
    broken = Steps(**{**steps.__dict__, side: values})
    with pytest.raises(HarnessError):
        judge(estimate(broken), Margins())


@given(st.lists(OWN, max_size=12), st.integers(0, 12), BAD)
def test_a_log_value_that_is_no_number_is_a_harness_error(values: list[float], place: int, bad: float) -> None:
    assume(not math.isfinite(bad))
    broken = [*values[:place], bad, *values[place:]]
    with pytest.raises(HarnessError):
        judge(log_mean(broken, "paired t"), Margins())
    with pytest.raises(HarnessError):
        Sample(tuple(broken), tuple(str(index) for index in range(len(broken))))


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8), st.integers(0, 7), BAD)
def test_a_window_that_is_no_time_cannot_even_be_recorded(seconds: list[float], place: int, bad: float) -> None:
    assume(place < len(seconds))
    seconds[place] = bad
    with pytest.raises(ValidationError):
        Windows(
            steps_per_window=1,
            seconds=seconds,
            cpu_seconds=[0.1] * len(seconds),
            rounds=list(range(len(seconds))),
            measured_from=0,
            steady=True,
            sync_seconds=0.0,
        )


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_a_missing_window_cannot_be_recorded(seconds: int, cpu: int, rounds: int) -> None:
    assume(not seconds == cpu == rounds)
    with pytest.raises(ValidationError):
        Windows(
            steps_per_window=1,
            seconds=[0.1] * seconds,
            cpu_seconds=[0.1] * cpu,
            rounds=list(range(rounds)),
            measured_from=0,
            steady=True,
            sync_seconds=0.0,
        )


@given(st.sampled_from(["windows", "step_time_s", "throughput_examples_per_s"]))
def test_an_ok_trial_without_its_measurement_cannot_be_recorded(key: str) -> None:
    with pytest.raises(ValidationError):
        TrialRecord.model_validate({**trial().model_dump(), key: None})


def test_no_values_at_all_are_an_error() -> None:
    with pytest.raises(HarnessError):
        Sample((), ())
    with pytest.raises(HarnessError):
        log_mean([], "paired t")


@QUICK
@given(series())
def test_one_trial_a_side_never_decides(steps: Steps) -> None:
    for groups in (("g", "g"), ("a", "b")):
        one = Sample.of_step_times(steps.a[:1], BATCH, [groups[0]])
        found = judge(log_ratio(Sample.of_step_times(steps.b[:1], BATCH, [groups[1]]), one), Margins())
        assert found.verdict == "undecided"
        assert found.reason is not None
