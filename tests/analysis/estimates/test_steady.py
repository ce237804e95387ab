"""The steady state rule: on exact series, and how often it says "steady" on simulated ones."""

import math

import numpy as np
import pytest

from harness.analysis.estimates.steady import (
    block_steady_from,
    diagnose,
    effective_sample_size,
    lag1_autocorrelation,
    outliers,
    quantile,
    steady_from,
    trials_steady_from,
)
from harness.errors import HarnessError

ROUNDS, CAP = 200, 20


def drifts(chance: np.random.Generator, length: int, deviation: float = 0.1, tau: float = 20.0) -> np.ndarray:
    keep = math.exp(-1 / tau)
    series = [chance.normal(0, deviation)]
    for _ in range(length - 1):
        series.append(keep * series[-1] + chance.normal(0, deviation * math.sqrt(1 - keep**2)))
    return np.array(series)


def block(chance: np.random.Generator, trials: int, sigma: float, common: np.ndarray) -> dict[str, list[float]]:
    return {f"t{k}": list(np.exp(chance.normal(0, sigma, len(common)) + common)) for k in range(trials)}


def test_a_constant_series_is_steady_from_its_first_window() -> None:
    assert steady_from([0.1] * 10) == 0


def test_fewer_windows_than_two_groups_give_no_answer() -> None:
    assert steady_from([0.1] * 9) is None
    assert steady_from([]) is None
    assert block_steady_from({"a": [0.1] * 9, "b": [0.1] * 30}) is None
    assert block_steady_from({}) is None


def test_a_steady_trend_is_never_steady_however_small_each_step() -> None:
    assert steady_from([1 + 0.001 * index for index in range(40)]) is None


def test_warm_up_is_passed_over_and_the_windows_after_it_are_not() -> None:
    series = [0.3, 0.2, 0.15, 0.13, *([0.100, 0.101] * 8)]
    start = steady_from(series)
    assert start is not None
    assert 2 <= start <= 5


def test_groups_whose_medians_differ_by_more_than_two_per_cent_are_not_steady() -> None:
    low, high = [1.0, 1.001, 0.999, 1.0, 1.0], [1.03, 1.031, 1.029, 1.03, 1.03]
    assert steady_from([*low, *high]) is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_window_time_that_is_no_number_is_an_error(bad: float) -> None:
    with pytest.raises(HarnessError, match="finite"):
        steady_from([1.0] * 10 + [bad])


@pytest.mark.parametrize(("sigma", "least"), [(0.01, 0.99), (0.02, 0.99), (0.03, 0.97), (0.04, 0.94)])
def test_flat_noise_is_found_steady_within_the_cap(sigma: float, least: float) -> None:
    chance = np.random.default_rng(1)
    found = sum(steady_from(list(np.exp(chance.normal(0, sigma, CAP)))) is not None for _ in range(ROUNDS))
    assert found / ROUNDS >= least


def test_common_drift_hides_the_steady_state_of_each_trial_and_not_of_the_block() -> None:
    chance = np.random.default_rng(2)
    alone = together = 0
    for _ in range(ROUNDS):
        windows = block(chance, 8, 0.02, drifts(chance, CAP))
        alone += all(steady_from(series) is not None for series in windows.values())
        together += block_steady_from(windows) is not None
    assert alone / ROUNDS < 0.75
    assert together / ROUNDS > 0.97


@pytest.mark.parametrize("trials", [2, 8])
def test_one_trials_warm_up_delays_the_whole_block_until_little_of_it_is_left(trials: int) -> None:
    chance = np.random.default_rng(3)
    decay = np.log1p(0.3 * np.exp(-np.arange(CAP + 10) / 3))
    left = []
    for _ in range(ROUNDS):
        windows = block(chance, trials, 0.02, drifts(chance, CAP + 10))
        windows["t0"] = list(np.array(windows["t0"]) * np.exp(decay))
        start = block_steady_from({name: series[:CAP] for name, series in windows.items()})
        if start is not None:
            left.append(decay[start : start + 10].mean())
    assert len(left) / ROUNDS > 0.88
    assert np.mean(left) < 0.025


def test_a_warm_up_that_all_trials_share_is_not_divided_away() -> None:
    chance = np.random.default_rng(4)
    decay = np.log1p(0.3 * np.exp(-np.arange(CAP + 10) / 3))
    left = []
    for _ in range(ROUNDS):
        windows = block(chance, 4, 0.01, decay)
        start = block_steady_from({name: series[:CAP] for name, series in windows.items()})
        if start is not None:
            left.append(decay[start : start + 10].mean())
    assert len(left) / ROUNDS > 0.9
    assert np.mean(left) < 0.02


def test_a_block_is_steady_when_its_last_trial_is_and_names_the_one_that_never_is() -> None:
    still = [1.0, 1.001] * 15
    late = [2.0 - 0.1 * index if index < 6 else 1.0 + 0.001 * (index % 2) for index in range(30)]
    starts = trials_steady_from({"a": still, "b": late})
    assert block_steady_from({"a": still, "b": late}) == max(start for start in starts.values() if start is not None)
    growing = [1.0 * 1.01**index for index in range(30)]
    assert trials_steady_from({"a": still, "b": [1.0] * 30, "c": growing})["c"] is None
    assert block_steady_from({"a": still, "b": [1.0] * 30, "c": growing}) is None


def test_one_trial_alone_is_judged_as_it_is() -> None:
    series = [1.3, 1.1, *([1.0, 1.001] * 8)]
    assert block_steady_from({"a": series}) == steady_from(series)


def test_diagnostics_agree_with_numpy() -> None:
    seconds = list(np.random.default_rng(7).gamma(9, 0.01, 40))
    found = diagnose(seconds, 10)
    expected = np.percentile(np.array(seconds) / 10, (50, 95, 99))
    assert (found.step_time_p50_s, found.step_time_p95_s, found.step_time_p99_s) == pytest.approx(expected)
    centred = np.array(seconds) - np.mean(seconds)
    assert found.lag1_autocorrelation == pytest.approx((centred[:-1] @ centred[1:]) / (centred @ centred))
    assert quantile([1.0, 2.0, 4.0], 0.75) == np.percentile([1, 2, 4], 75)


def test_an_outlier_is_flagged_by_tukeys_fences() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 2.0]) == (6,)
    assert outliers([1.0, 9.0, 1.0]) == ()


def test_neighbours_that_resemble_each_other_are_worth_fewer_windows() -> None:
    assert effective_sample_size(100, 0.5) == pytest.approx(100 / 3)
    assert effective_sample_size(100, -0.5) == 100
    assert lag1_autocorrelation([1.0, 1.0, 1.0]) is None


def test_diagnosing_no_windows_is_an_error() -> None:
    with pytest.raises(HarnessError, match="no windows"):
        diagnose([], 10)
