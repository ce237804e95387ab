"""Trends within trials: what flat series are found to have, and how often a warm-up is seen."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from harness.analysis.estimates import trend
from harness.analysis.estimates.trend import trends

SCATTERS = (0.046, 0.07, 0.107, 0.15)
"""Of windows around their trial's level: what was seen on two cores, and more."""


def noise(chance: np.random.Generator, trials: int, cells: int, windows: int, own_drift: float = 0.2) -> np.ndarray:
    """ln of windows by (trial, cell, window): heavy tails, autocorrelation in each trial, and drift that all share."""
    scatter = chance.choice(SCATTERS, size=(1, cells, 1))
    scatter[0, 0, 0] = 0.07
    levels = np.linspace(0.0, 0.3, cells)[:, None]
    own = chance.standard_t(3, size=(trials, cells, windows)) / math.sqrt(3)
    common = chance.normal(size=(trials, 1, windows))
    for series, keep in ((own, own_drift), (common, 0.95)):
        for number in range(1, windows):
            series[..., number] = keep * series[..., number - 1] + math.sqrt(1 - keep**2) * series[..., number]
    return np.asarray(levels + scatter * own + 0.06 * common)


def found(logs: np.ndarray) -> dict[int, float]:
    return trends([list(enumerate(np.exp(trial))) for trial in logs])


def share_found(
    runs: int, shape: tuple[int, int, int], change: np.ndarray | float = 0.0, own_drift: float = 0.2
) -> float:
    """How often the first cell, of which each window takes `change` longer, is found; of none, how often any is."""
    chance = np.random.default_rng(7)
    count = 0
    for _ in range(runs):
        logs = noise(chance, *shape, own_drift)
        logs[:, 0] += np.log1p(change)
        cells = found(logs)
        count += 0 in cells if np.any(change) else bool(cells)
    return count / runs


RUNS = 250
LIMIT = 0.05 + 1.64 * math.sqrt(0.05 * 0.95 / RUNS)
"""What a rate of 5 % exceeds in 5 of 100 such simulations."""
FLAT = {
    "sweep": (4, 22, 12),
    "small sweep": (4, 6, 12),
    "five cells": (4, 5, 12),
    "three cells": (4, 3, 12),
    "two trials": (2, 22, 12),
    "ab": (5, 2, 100),
}


@pytest.mark.parametrize("own_drift", [0.2, 0.5])
@pytest.mark.parametrize("shape", FLAT.values(), ids=FLAT)
def test_runs_of_flat_series_are_found_to_have_a_trend_at_most_five_times_in_a_hundred(
    shape: tuple[int, int, int], own_drift: float
) -> None:
    assert share_found(RUNS, shape, own_drift=own_drift) <= LIMIT


@pytest.mark.parametrize("name", ["sweep", "small sweep", "two trials"])
def test_with_four_fifths_of_the_threshold_that_would_not_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quantile = special.stdtr
    monkeypatch.setattr(trend.special, "stdtr", lambda freedom, below: quantile(freedom, below / 0.8))
    assert share_found(RUNS, FLAT[name]) > LIMIT


def test_a_warm_up_that_goes_on_is_found() -> None:
    decay = 0.3 * np.exp(-np.arange(12) / 3)
    assert share_found(100, FLAT["sweep"], decay) > 0.8
    step = 0.1 * (np.arange(100) < 15)
    assert share_found(100, (12, 2, 100), step) > 0.9
    assert share_found(100, FLAT["ab"], step) > 0.5


def test_a_trend_has_its_cell_its_direction_and_about_its_size() -> None:
    logs = noise(np.random.default_rng(3), 8, 10, 20)
    logs[:, 4] += np.linspace(0.2, 0.0, 20)
    cells = found(logs)
    assert list(cells) == [4]
    assert math.expm1(-0.3) < cells[4] < math.expm1(-0.1)


def test_the_trend_of_the_cell_in_the_middle_is_its_own() -> None:
    logs = 0.1 * noise(np.random.default_rng(3), 4, 3, 12)
    logs += np.linspace(0.0, 0.3, 3)[:, None]
    logs[:, 1] += np.linspace(0.1, 0.0, 12)
    assert list(found(logs)) == [1]


def test_windows_that_grow_longer_are_found_as_well() -> None:
    logs = noise(np.random.default_rng(3), 8, 10, 20)
    logs[:, 4] += np.linspace(0.0, 0.3, 20)
    assert found(logs)[4] > 0.1


def test_what_all_trials_share_in_the_same_rounds_is_no_trend() -> None:
    logs = noise(np.random.default_rng(3), 8, 10, 20) + np.linspace(0.5, 0.0, 20)
    assert found(logs) == {}


def test_a_change_too_small_to_matter_is_not_told_however_sure() -> None:
    logs = 1e-5 * noise(np.random.default_rng(3), 8, 10, 20)
    logs[:, 4] += np.linspace(0.009, 0.0, 20)
    assert found(logs) == {}
    logs[:, 4] += np.linspace(0.009, 0.0, 20)
    assert list(found(logs)) == [4]


def test_made_series_without_any_noise_are_judged_too() -> None:
    flat = [0.1] * 6
    falling = [0.2, 0.18, 0.16, 0.14, 0.12, 0.1]
    run = [[("a", flat), ("b", flat), ("c", falling)] for _ in range(3)]
    assert trends(run)["c"] < -0.4


def test_of_one_trial_a_cell_or_of_trials_without_company_nothing_is_known() -> None:
    falling = [0.2, 0.18, 0.16, 0.14, 0.12, 0.1]
    assert trends([[("a", falling), ("b", [0.1] * 6)]]) == {}
    assert trends([[("a", falling)], [("a", falling)], [("a", falling)]]) == {}
    assert trends([]) == {}


def test_the_protocol_tells_the_rates_that_the_module_does() -> None:
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+ %)[^|]* \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    told = [re.findall(r"(\d+) %", line) for line in (trend.__doc__ or "").splitlines()]
    assert len(rows) == 3
    for size, *rates in rows:
        assert [size.removesuffix(" %"), *rates] in told
