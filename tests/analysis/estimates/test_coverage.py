"""Coverage of the intervals on synthetic series, and the error rates of the verdict that rest on it.

A short form of `benchmarks/goals/coverage.py`, whose own code runs here; the seeds are fixed. A coverage has to lie in
the band of 998 of 1,000 such simulations of the stated confidence, and four fifths of the same intervals below it,
under each series that an interval is said to hold under.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from harness.analysis.estimates import intervals
from harness.analysis.estimates.intervals import LogEstimate, log_mean
from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.estimates.verdict import Correction, Margins, Verdict, judge, judge_all
from tests.analysis.noises import as_seen, normal, scaled
from tests.goals import load

REPETITIONS = 2000


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
    low, high = (float(stats.binom.ppf(share, REPETITIONS, confidence)) for share in (0.001, 0.999))
    return low / REPETITIONS, high / REPETITIONS


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


def would_be_found_out(method: str, blocks: int) -> float:
    """How long intervals may be that are found to be too short: four fifths of what they are, nearly everywhere."""
    # Stein's pilot of five blocks is three: t of two degrees of freedom reaches so far that a fifth less holds 92 to 94
    # times in 100. And of three looks the intervals hold together, each one more often, so that a fifth less holds 95
    # times (of all of them together `test_looks` finds out the fifth). Six tenths hold 87 to 89 times
    wide = (method.startswith("Stein") and blocks == 5) or (method.startswith("repeated") and blocks == 12)
    return 0.6 if wide else 0.8


@pytest.mark.parametrize("blocks", [5, 12])
@pytest.mark.parametrize("method", IN_USE)
def test_an_interval_covers_95_per_cent_of_a_plain_series_and_a_shorter_one_would_not(method: str, blocks: int) -> None:
    low, high = BAND
    assert low <= covered(method, "plain", blocks) <= (0.99 if method.startswith("repeated") else high)
    assert covered(method, "plain", blocks, would_be_found_out(method, blocks)) < low


@pytest.mark.parametrize("blocks", [5, 12])
@pytest.mark.parametrize("series", ["plain", "as seen"])
def test_the_interval_of_the_equivalence_test_covers_90_per_cent_and_a_fifth_shorter_would_not(
    series: str, blocks: int
) -> None:
    low, high = BAND_90
    assert low <= covered("paired t, 90 %", series, blocks) <= high
    assert covered("paired t, 90 %", series, blocks, shorter=0.8) < low


@pytest.mark.parametrize("series", ["linear drift", "slow sine", "autocorrelated", "spikes", "as seen"])
@pytest.mark.parametrize(
    ("method", "blocks"),
    [
        *((method, 5) for method in ("paired t", "repeated t of pairs", "paired t through the base")),
        *(("Stein t of pairs", blocks) for blocks in (5, 12)),
    ],
)
def test_what_the_sides_share_does_no_harm_to_pairs_and_shorter_intervals_would_be_found_out(
    method: str, series: str, blocks: int
) -> None:
    assert BAND[0] <= covered(method, series, blocks) <= 0.98
    assert covered(method, series, blocks, would_be_found_out(method, blocks)) < BAND[0]


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


Draw = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
each_noise = pytest.mark.parametrize("noise", [normal, as_seen])


def values(noise: Draw, seed: int, shape: tuple[int, ...], deviation: float) -> NDArray[np.float64]:
    """Of pairs, the last axis, that scatter by `deviation` about 0."""
    *sets, pairs = shape
    found = noise(np.random.default_rng(seed), math.prod(sets), pairs)
    return np.asarray(deviation * found / found.std()).reshape(shape)


def estimates(rows: Sequence[Sequence[float]], times: float = 1.0) -> list[LogEstimate]:
    """Of each row, with intervals `times` as long."""
    return [log_mean(scaled(row, times), "paired t") for row in rows]


@each_noise
def test_twelve_pairs_at_1_6_per_cent_find_three_per_cent_and_raise_no_false_alarm(noise: Draw) -> None:
    rounds, margins = 800, Margins(0.01, 0.03)
    pairs = values(noise, 7, (rounds, 12), 0.016)

    def judged(mean: float, times: float) -> Counter[Verdict]:
        """By intervals `times` as long."""
        return Counter(judge(estimate, margins).verdict for estimate in estimates((pairs + mean).tolist(), times))

    (right, wide), (same, wide_same) = ([judged(mean, times) for times in (1, 2)] for mean in (math.log(0.97), 0.0))
    assert wide["slower"] < 0.94 * rounds <= right["slower"], "intervals twice as long would be found out"
    assert wide_same["equivalent"] < 0.98 * rounds <= same["equivalent"]
    tight = judged(0.0, 0.3)  # a fifth shorter they raise none either, so far is nothing from δ
    assert same["slower"] + same["faster"] == 0 < tight["slower"] + tight["faster"]


@each_noise
def test_at_the_margins_it_errs_as_seldom_as_it_may_and_with_intervals_a_fifth_shorter_more_often(noise: Draw) -> None:
    rounds, at = 3000, Margins(0.03, 0.03)
    rows = (values(noise, 8, (rounds, 12), 0.016) + at.log_delta).tolist()
    right, shorter = (Counter(judge(one, at).verdict for one in estimates(rows, times)) for times in (1, 0.8))
    may: dict[Verdict, float] = {"faster": 0.025, "equivalent": 0.05}
    for verdict, share in may.items():
        slack = 3 * math.sqrt(share * (1 - share) / rounds)
        assert share - 2 * slack < right[verdict] / rounds <= share + slack < shorter[verdict] / rounds


@pytest.mark.parametrize(("cells", "trials"), [(4, 2), (4, 3), (12, 3), (12, 5)])
def test_a_cell_three_times_as_noisy_as_the_others_has_an_interval_that_holds_the_truth_93_times_in_100(
    goal: ModuleType, cells: int, trials: int
) -> None:
    # by variances that quiet cells lend it 88 to 91 times
    assert goal.cells_that_hold(cells, 3.0, trials, 1200) >= stats.binom.ppf(0.01, 1200, 0.94) / 1200


@each_noise
def test_holm_keeps_the_chance_of_any_false_alarm_at_five_per_cent_and_a_fifth_shorter_would_not(noise: Draw) -> None:
    sets = values(noise, 12, (500, 8, 6), 0.02).tolist()

    def alarms(correction: Correction, rounds: int, times: float = 1.0) -> int:
        judged = (judge_all(estimates(rows, times), Margins(0.0, 0.001), correction) for rows in sets[:rounds])
        return sum(any(item.verdict in ("faster", "slower") for item in found) for found in judged)

    assert alarms("holm", 500) <= stats.binom.ppf(0.95, 500, 0.05) < alarms("holm", 500, times=0.8)
    assert alarms("none", 100) > 20


@each_noise
def test_benjamini_and_hochberg_keep_the_share_of_false_alarms_among_the_alarms_at_five_per_cent(noise: Draw) -> None:
    sets = (values(noise, 21, (250, 20, 6), 0.02) + np.repeat([0.0, 0.1], [15, 5])[:, None]).tolist()

    def share(times: float) -> float:
        """With intervals `times` as long."""
        shares = []
        for rows in sets:
            found = judge_all(estimates(rows, times), Margins(0.0, 0.001), "fdr")
            alarms = [place for place, item in enumerate(found) if item.verdict in ("faster", "slower")]
            shares.append(sum(place < 15 for place in alarms) / max(1, len(alarms)))
        return float(np.mean(shares))

    assert 0.01 < share(1) <= 0.05 < share(0.8)
