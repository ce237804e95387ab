"""The set that may be the fastest, and the speed-up of a cell that was chosen: what they keep, simulated.

A short form of `benchmarks/goals/best.py`, whose own code runs here; the seeds are fixed. Each rule is also tried with
limits a fifth shorter, in the same simulation, which has to be found out.
"""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from harness.analysis.estimates import selection
from harness.analysis.ranking import rank
from tests.docs.stated import section, states
from tests.goals import load

GOAL = 0.945
LEAST, LEAST_NOISY = 0.93, 0.87
"""With all cells equal: whatever their noise, and with a fastest one three times as noisy as the others."""
ROUNDS = 200
ROOT = Path(__file__).parents[2]
NOISES = ("plain", "unequal", "every_other", "heavy", "two_states")


@pytest.fixture(scope="module")
def goal() -> ModuleType:
    """`best.py`."""
    return load("best")


def least(rounds: int, share: float) -> float:
    """What a true share comes to at least, in 999 of 1,000 such simulations."""
    return float(stats.binom.ppf(0.001, rounds, share)) / rounds


@pytest.mark.parametrize(("noise", "of_bonferroni"), [*((noise, 0.67) for noise in NOISES[:4]), (NOISES[4], 0.82)])
def test_the_truly_fastest_cell_stays_in_a_set_much_smaller_than_bonferronis(
    goal: ModuleType, noise: str, of_bonferroni: float
) -> None:
    found = goal.simulated_set(getattr(goal, noise), tied=5, rounds=60)
    assert found.share >= GOAL
    assert found.size <= of_bonferroni * found.bonferroni
    assert found.size - 5 <= 0.4 * (found.bonferroni - 5), "five are truly the fastest"


def test_with_all_cells_equal_it_stays_too_and_shorter_limits_would_lose_it(goal: ModuleType) -> None:
    found = goal.simulated_set(goal.plain, tied=14, rounds=300)
    assert found.share >= GOAL
    assert found.shorter < least(300, 0.95)


@pytest.mark.parametrize("noise", NOISES[1:])
def test_with_all_cells_equal_it_stays_in_at_least_93_of_100_whatever_the_noise(goal: ModuleType, noise: str) -> None:
    assert goal.simulated_set(getattr(goal, noise), tied=14, rounds=100).share >= least(100, LEAST)


def test_a_fastest_cell_three_times_as_noisy_as_all_others_is_the_limit_that_is_told(goal: ModuleType) -> None:
    share = goal.simulated_set(goal.fastest_noisy, tied=14, rounds=100).share
    assert least(100, LEAST_NOISY) <= share < 0.95
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert states(section(page, "Many comparisons"), f"{100 * LEAST:g}", f"{100 * LEAST_NOISY:g}")


def test_a_cell_further_down_is_never_tied_where_one_above_it_is_not(goal: ModuleType) -> None:
    chance = np.random.default_rng(6)
    alone_out = 0
    for _ in range(60):
        logs = goal.draw(goal.every_other, chance, -0.02 * np.arange(14), 4)
        places = rank(goal.names(14), goal.layout_of(logs))
        flags = [place.with_best for place in places]
        assert flags == sorted(flags, reverse=True)
        tied = [place for place in places[1:] if place.with_best]
        alone_out += any((place.against_best.high or 2) < 1 for place in tied if place.against_best)
        needed = [place.trials_to_separate or 1001 for place in tied]
        assert needed == sorted(needed, reverse=True)
    assert alone_out, "or the rule was not needed"


@pytest.mark.parametrize("noise", NOISES)
def test_the_speed_up_of_the_best_of_fourteen_holds_the_truth_and_is_not_too_high(goal: ModuleType, noise: str) -> None:
    found = goal.speed_up(getattr(goal, noise), rounds=ROUNDS)
    assert found.share >= GOAL
    error = (0.06 if noise == "every_other" else 0.026) / ROUNDS**0.5  # of the mean of so many sweeps
    assert abs(found.bias) < 0.003 + error
    assert found.plain_bias > 0.01, "what the fastest of fourteen seems faster than it is"


def test_bases_that_are_chosen_too_do_no_harm(goal: ModuleType) -> None:
    found = goal.speed_up(goal.plain, bases=3, rounds=ROUNDS)
    assert found.share >= GOAL
    assert abs(found.bias) < 0.004


def test_a_plain_interval_and_a_shorter_one_would_be_found_out(goal: ModuleType) -> None:
    found = goal.speed_up(goal.every_other, rounds=ROUNDS)
    assert found.plain_share < least(ROUNDS, 0.95)
    assert found.shorter < GOAL <= found.share


def test_a_cell_that_is_far_ahead_has_its_plain_ratio(goal: ModuleType) -> None:
    chance = np.random.default_rng(3)
    layout = goal.layout_of(goal.draw(goal.plain, chance, np.array([1.0, 0.5, 0.4, 0.0]), 4))
    names = goal.names(4)
    found = selection.fastest_over(layout, names[:3], names[3:])
    assert found.value == pytest.approx(layout.ratio(names[0], names[3]).interval().value)
    assert found.method == "Dunnett"
    alone, paired = selection.fastest_over(layout, names[:1], names[3:]), layout.ratio(names[0], names[3]).interval()
    assert (alone.low, alone.high, alone.method) == (
        pytest.approx(paired.low),
        pytest.approx(paired.high),
        "moderated t",
    )
