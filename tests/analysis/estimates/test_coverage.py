"""Coverage of the intervals on synthetic series, and the error rates of the verdict that rest on it.

A short form of `benchmarks/goals/coverage.py`, whose own code runs here; the seeds are fixed. A coverage has to lie in
the band of 998 of 1,000 such simulations of the stated confidence, and four fifths of the same intervals below it.
"""

import functools
import math
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from harness.analysis.estimates import intervals
from harness.analysis.estimates.intervals import log_mean
from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.estimates.verdict import Margins, judge, judge_all
from tests.goals import load

REPETITIONS = 800


@functools.cache
def coverage() -> ModuleType:
    """`coverage.py`, once: it knows the truth of each series from then on."""
    return load("coverage")


@pytest.fixture
def goal() -> ModuleType:
    """The same."""
    return coverage()


def band(confidence: float) -> tuple[float, float]:
    """What a true coverage of `confidence` lies between in 998 of 1,000 simulations."""
    low, high = stats.binom.ppf([0.001, 0.999], REPETITIONS, confidence) / REPETITIONS
    return float(low), float(high)


BAND, BAND_90 = band(0.95), band(0.90)


@functools.cache
def reaches(method: str, series: str, blocks: int) -> NDArray[np.float64]:
    """How far the truth lies out in the intervals of one method over one series, by their names."""
    goal = coverage()
    methods = {item.name: item for item in (*goal.METHODS, *goal.REJECTED)}
    named = {item.name: item for item in goal.SERIES}
    return np.asarray(goal.reaches(methods[method], named[series], blocks, REPETITIONS))


def covered(method: str, series: str, blocks: int, shorter: float = 1.0) -> float:
    """The coverage of one method over one series; of intervals `shorter` times as long."""
    return float((reaches(method, series, blocks) <= shorter).mean())


IN_USE = [
    "paired t",
    "repeated t of pairs",
    "Stein t of pairs",
    "paired t through the base",
    "Welch t, trials alternate",
    "Welch t, run after run",
    "t of one cell",
    "Stein t of one cell",
]


def test_every_method_in_use_is_looked_at(goal: ModuleType) -> None:
    assert {item.name for item in goal.METHODS} == {*IN_USE, "paired t, 90 %"}


@pytest.mark.parametrize("blocks", [5, 12])
@pytest.mark.parametrize("method", IN_USE)
def test_an_interval_covers_95_per_cent_of_a_plain_series(method: str, blocks: int) -> None:
    low, high = BAND
    assert low <= covered(method, "plain", blocks) <= (0.99 if method.startswith("repeated") else high)


def test_the_interval_of_the_equivalence_test_covers_90_per_cent() -> None:
    for blocks in (5, 12):
        assert BAND_90[0] <= covered("paired t, 90 %", "plain", blocks) <= BAND_90[1]


ALONE = ("Welch t, trials alternate", "t of one cell")
"""Without a partner in the same group: what the machine does is in them, so that they hold where it stands still."""
PAIRED = ("paired t", "paired t, 90 %", "paired t through the base")


@pytest.mark.parametrize(
    ("method", "series"),
    [*((method, "plain") for method in (*PAIRED, *ALONE)), *((method, "as seen") for method in PAIRED)],
)
def test_intervals_that_are_a_fifth_shorter_would_be_found_out(method: str, series: str) -> None:
    low, _ = BAND_90 if method.endswith("90 %") else BAND
    assert covered(method, series, 12) >= low
    assert covered(method, series, 12, shorter=0.8) < low


@pytest.mark.parametrize("series", ["linear drift", "slow sine", "autocorrelated", "spikes", "as seen"])
@pytest.mark.parametrize("method", ["paired t", "repeated t of pairs", "Stein t of pairs", "paired t through the base"])
def test_what_the_sides_share_does_no_harm_to_pairs(method: str, series: str) -> None:
    assert BAND[0] <= covered(method, series, 5) <= 0.98


def test_the_normal_quantile_in_place_of_students_would_be_found_out(
    goal: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "t_quantile", lambda _freedom, _confidence=0.95: 1.96)
    [paired] = [item for item in goal.METHODS if item.name == "paired t"]
    assert goal.measure(paired, goal.SERIES[0], 5, REPETITIONS).share < 0.91


@pytest.mark.parametrize(
    ("method", "series", "at_most"),
    [
        ("Welch t, run after run", "slow sine", 0.5),
        ("t of one cell", "slow sine", 0.5),
        ("t of one cell", "autocorrelated", 0.85),
        ("t of one cell", "two states, 1:4", 0.85),
        ("paired t", "uneven sine", 0.85),
    ],
)
def test_where_an_interval_falls_short_the_documentation_is_right_to_say_so(
    method: str, series: str, at_most: float
) -> None:
    assert covered(method, series, 5) < at_most


def test_the_rejected_methods_are_rejected_for_a_reason() -> None:
    assert covered("bootstrap percentiles of pairs", "plain", 5) < 0.90
    assert covered("windows pooled, Student's t", "plain", 5) < 0.85
    assert covered("windows pooled, Student's t", "two states, 1:1", 12) < 0.5


@pytest.mark.parametrize(
    ("count", "mark"),
    [(950, "met"), (946, "met"), (945, "not shown"), (930, "not shown"), (912, "TOO LOW"), (981, "too wide")],
)
def test_a_coverage_is_within_93_to_97_per_cent_or_outside_where_both_its_limits_are(
    goal: ModuleType, count: int, mark: str
) -> None:
    found = goal.Coverage(goal.METHODS[0], goal.SERIES[0], 5, clopper_pearson(count, 1000))
    assert found.mark == mark


# the series themselves


def test_in_every_series_b_is_three_per_cent_below_a_in_the_long_run(goal: ModuleType) -> None:
    for series in goal.SERIES:
        steps = series.step_times(np.random.default_rng(1), 4000, goal.taking_turns(3))
        logs = goal.log_throughput(steps)
        differences = (logs[:, 1] - logs[:, 0]).mean(axis=1)
        error = differences.std() / math.sqrt(len(differences))
        assert abs(differences.mean() - math.log(0.97)) < 4 * error, series.name


def test_the_truth_of_a_plain_cell_is_its_step_time(goal: ModuleType) -> None:
    plain = goal.SERIES[0]
    # the mean of 20 log-normal windows is about exp(σ²/2), and its logarithm loses σ²/40 of it
    bias = 0.03**2 / 2 - 0.03**2 / 40
    assert plain.cell_truth() == pytest.approx(-math.log(0.01) - bias, abs=1e-4)


def test_drift_is_common_to_the_sides_that_take_turns(goal: ModuleType) -> None:
    named = {item.name: item for item in goal.SERIES}
    for name in ("linear drift", "slow sine", "autocorrelated"):
        logs = goal.log_throughput(named[name].step_times(np.random.default_rng(2), 2000, goal.taking_turns(12)))
        assert logs[:, 0].std(axis=1).mean() > 1.3 * (logs[:, 1] - logs[:, 0]).std(axis=1).mean(), name


def test_windows_of_the_autocorrelated_series_resemble_their_neighbours(goal: ModuleType) -> None:
    noise = next(item for item in goal.SERIES if item.name == "autocorrelated").window(
        np.random.default_rng(3), (4000, 40)
    )
    assert np.corrcoef(noise[:, 20], noise[:, 21])[0, 1] == pytest.approx(0.7, abs=0.05)
    assert noise[:, 39].std() == pytest.approx(0.03, rel=0.05)


def test_half_or_a_fifth_of_the_two_state_trials_are_slow(goal: ModuleType) -> None:
    named = {item.name: item for item in goal.SERIES}
    for name, share in (("two states, 1:1", 0.5), ("two states, 1:4", 0.2)):
        own = named[name].own(np.random.default_rng(4), (20_000,))
        assert (own > 0.02).mean() == pytest.approx(share, abs=0.015)


# the verdict's own rates


def test_twelve_pairs_at_1_6_per_cent_find_three_per_cent_and_raise_no_false_alarm() -> None:
    chance = np.random.default_rng(7)
    rounds, margins = 800, Margins(0.01, 0.03)
    verdicts = {
        mean: [judge(log_mean(row, "paired t"), margins).verdict for row in _pairs(chance, mean, rounds)]
        for mean in (math.log(0.97), 0.0, math.log(1.01), math.log(1.03))
    }
    assert verdicts[math.log(0.97)].count("slower") / rounds >= 0.96
    assert verdicts[0.0].count("equivalent") / rounds >= 0.98
    assert verdicts[0.0].count("slower") + verdicts[0.0].count("faster") == 0
    at_delta = verdicts[math.log(1.01)]
    assert at_delta.count("faster") / rounds == pytest.approx(0.025, abs=0.02), "2.5 % at the margin itself"
    at_epsilon = verdicts[math.log(1.03)]
    assert at_epsilon.count("equivalent") / rounds <= 0.07, "equivalence is wrongly claimed at most 5 times in 100"


def test_holm_keeps_the_chance_of_any_false_alarm_at_five_per_cent() -> None:
    chance = np.random.default_rng(12)
    alarms = {"none": 0, "holm": 0}
    for _ in range(300):
        estimates = [log_mean(chance.normal(0, 0.02, 6).tolist(), "paired t") for _ in range(8)]
        for correction in ("none", "holm"):
            found = judge_all(estimates, Margins(0.0, 0.001), correction)  # type: ignore[arg-type]
            alarms[correction] += any(item.verdict in ("faster", "slower") for item in found)
    assert alarms["none"] / 300 > 0.2
    assert alarms["holm"] <= stats.binom.ppf(0.95, 300, 0.05)


def test_benjamini_and_hochberg_keep_the_share_of_false_alarms_among_the_alarms_at_five_per_cent() -> None:
    chance = np.random.default_rng(21)
    truths = np.array([0.0] * 15 + [0.1] * 5)
    shares = []
    for _ in range(400):
        estimates = [log_mean(chance.normal(truth, 0.02, 6).tolist(), "paired t") for truth in truths]
        found = judge_all(estimates, Margins(0.0, 0.001), "fdr")
        alarms = [place for place, item in enumerate(found) if item.verdict in ("faster", "slower")]
        shares.append(sum(place < 15 for place in alarms) / max(1, len(alarms)))
    assert 0.01 < np.mean(shares) <= 0.05


def _pairs(chance: np.random.Generator, mean: float, rounds: int) -> list[list[float]]:
    drawn: list[list[float]] = chance.normal(mean, 0.016, (rounds, 12)).tolist()
    return drawn
