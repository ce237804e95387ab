"""Trends within trials: what flat series are found to have, and how often a warm-up is seen."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from harness.analysis.estimates.trend import _slopes, trends
from harness.analysis.trends import trend_words

Array = NDArray[np.float64]
SCATTERS = (0.046, 0.07, 0.107, 0.15)
"""Of windows around their trial's level: what was seen on two cores, and more."""


def noises(
    chance: np.random.Generator, runs: int, trials: int, cells: int, windows: int, own_drift: float = 0.2
) -> Array:
    """ln of windows by (run, trial, cell, window): heavy tails, autocorrelation in trials, and drift that all share."""
    scatter = chance.choice(SCATTERS, size=(runs, 1, cells, 1))
    scatter[:, :, 0] = 0.07
    levels = np.linspace(0.0, 0.3, cells)[:, None]
    own = chance.standard_t(3, size=(runs, trials, cells, windows)) / math.sqrt(3)
    common = chance.normal(size=(runs, trials, 1, windows))
    for series, keep in ((own, own_drift), (common, 0.95)):
        for number in range(1, windows):
            series[..., number] = keep * series[..., number - 1] + math.sqrt(1 - keep**2) * series[..., number]
    return np.asarray(levels + scatter * own + 0.06 * common)


def noise(chance: np.random.Generator, trials: int, cells: int, windows: int) -> Array:
    """The same of one run, by (trial, cell, window)."""
    return np.asarray(noises(chance, 1, trials, cells, windows)[0])


def found(logs: Array) -> dict[int, float]:
    return trends([list(enumerate(np.exp(trial))) for trial in logs])


def share_found(runs: Array, cell: int | None = None) -> float:
    """In how many of the runs the cell is found; of None in how many any is."""
    cells = [found(logs) for logs in runs]
    return sum(bool(of) if cell is None else cell in of for of in cells) / len(cells)


def share_warming_up(runs: int, shape: tuple[int, int, int], change: NDArray[Any]) -> float:
    """How often the first cell, of which each window takes `change` longer, is found."""
    logs = noises(np.random.default_rng(7), runs, *shape)
    logs[:, :, 0] += np.log1p(change)
    return share_found(logs, 0)


FLAT = {
    "sweep": ((4, 22, 12), 250),
    "small sweep": ((4, 6, 12), 300),
    "five cells": ((4, 5, 12), 400),
    "three cells": ((4, 3, 12), 600),
    "two trials": ((2, 22, 12), 700),
    "ab": ((5, 2, 100), 250),
}
"""Shapes, and how many runs of each tell what the rule finds from what it would find with less of its threshold."""
TIMES = {"ab": 0.5}
"""How much of its threshold would be found out where four fifths would not. What one of two cells does the other does
the other way round, so that Holm's correction counts one trend twice: the rule finds one in 2 or 3 of 100 runs, with
four fifths of its threshold in 4 or 5, which it may, and with half of it in 12 to 15."""


@pytest.mark.parametrize("own_drift", [0.2, 0.5])
@pytest.mark.parametrize("name", FLAT)
def test_runs_of_flat_series_are_found_to_have_a_trend_at_most_five_times_in_a_hundred_and_with_less_threshold_more(
    name: str, own_drift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, count = FLAT[name]
    limit = 0.05 + 1.64 * math.sqrt(0.05 * 0.95 / count)  # a rate of 5 % exceeds it in 5 of 100 such simulations
    runs = noises(np.random.default_rng(7), count, *shape, own_drift)
    quantile, right, times = special.stdtr, share_found(runs), TIMES.get(name, 0.8)
    monkeypatch.setattr(special, "stdtr", lambda freedom, below: quantile(freedom, below / times))
    assert right <= limit < share_found(runs)


def test_a_warm_up_that_goes_on_is_found() -> None:
    decay = 0.3 * np.exp(-np.arange(12) / 3)
    assert share_warming_up(100, FLAT["sweep"][0], decay) > 0.8
    step = 0.1 * (np.arange(100) < 15)
    assert share_warming_up(100, (12, 2, 100), step) > 0.9
    assert share_warming_up(100, FLAT["ab"][0], step) > 0.5


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


def test_the_protocol_tells_the_rates_that_are_found() -> None:
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) %(, evenly|·exp)[^|]* \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    shapes, runs = (FLAT["sweep"][0], FLAT["ab"][0], (12, 2, 100)), 100
    assert len(rows) == 3
    for size, how, *rates in rows:
        for told, shape in zip(map(int, rates), shapes, strict=True):
            order = np.arange(shape[2])
            falling = np.clip(1 - order / 15, 0, None) if how == ", evenly" else np.exp(-order / 3)
            rate = share_warming_up(runs, shape, int(size) / 100 * falling)
            share = min(max(told / 100, 0.02), 0.98)
            assert abs(rate - told / 100) < 3 * math.sqrt(share * (1 - share) / runs), (size, how, shape)


# why no pilot chooses the warm-up


def level(block: Array) -> float:
    """By how much the first half of a block's rounds takes longer than the second, all cells together."""
    half = block.shape[1] // 2
    return float(block[:, :half].mean() - block[:, half:].mean())


def differing(block: Array) -> float:
    """How far the cells' trends lie from the group's, all together."""
    return math.fsum(score**2 for score, _ in _slopes(block))


def lengthened(warm_up: Array, cells: slice) -> list[float]:
    """How often each test of a first block, which is wrong about 5 % of flat ones, finds the warm-up of these cells."""
    flat = noises(np.random.default_rng(7), 1500, 1, 22, 12)[:, 0]
    warm = flat.copy()
    warm[:, cells] += np.log1p(warm_up)
    found = []
    for test in (level, differing):
        limit = np.quantile([test(block) for block in flat], 0.95)
        found.append(float(np.mean([test(block) > limit for block in warm])))
    return found


def test_a_pilot_of_the_whole_first_block_finds_a_warm_up_as_seldom_as_the_page_says() -> None:
    page = (Path(__file__).parents[3] / "benchmarks" / "goals" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\d+) %(, evenly|·exp)[^|]* \| (all|every|one)[^|]* \| (\d+) % \| (\d+) % \|$", page, re.MULTILINE
    )
    which, order = {"all": slice(None), "every": slice(None, None, 2), "one": slice(0, 1)}, np.arange(12)
    assert len(rows) == 6
    for size, how, cells, *told in rows:
        falling = np.clip(1 - order / 15, 0, None) if how == ", evenly" else np.exp(-order / 3)
        found = lengthened(int(size) / 100 * falling, which[cells])
        assert [round(100 * share) for share in found] == [int(share) for share in told], (size, how, cells)


@pytest.mark.parametrize(
    ("change", "words"), [(1.5, "150 % longer"), (-0.35, "35 % shorter"), (-0.0312, "3.1 % shorter")]
)
def test_a_trend_is_told_in_percent_however_large_it_is(change: float, words: str) -> None:
    assert trend_words(change) == f"windows become {words}"
