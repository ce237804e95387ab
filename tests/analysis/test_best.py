"""The set that may be the fastest, and the speed-up of a cell that was chosen: what they keep, simulated.

A short form of `benchmarks/goals/best.py`, whose own code runs here, with the noise that was seen beside its own; the
seeds are fixed. Each simulation also has the same rule with shorter limits, from the same draws, which has to be found
out: a fifth shorter wherever the rule is not so wide that even those keep what it promises.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from harness.analysis.estimates import selection
from harness.analysis.ranking import rank
from tests.analysis.noises import Chance, cells_as_seen
from tests.docs.stated import section, states
from tests.goals import load

Array = NDArray[np.float64]
GOAL = 0.945
ROOT = Path(__file__).parents[2]


@functools.cache
def best() -> ModuleType:
    """`best.py`, once."""
    return load("best")


@pytest.fixture
def goal() -> ModuleType:
    """The same."""
    return best()


def noise_of(name: str) -> Callable[[Chance, int, int], Array]:
    """By its name in `best.py`, or as it was seen."""
    if name != "as_seen":
        found: Callable[[Chance, int, int], Array] = getattr(best(), name)
        return found
    return lambda chance, cells, groups: cells_as_seen(chance, cells, groups) / best().SPREAD


def least(rounds: int, share: float, sure: float = 0.999) -> float:
    """What a true share comes to at least, in so many of such simulations."""
    return float(stats.binom.ppf(1 - sure, rounds, share)) / rounds


@dataclass(frozen=True)
class Sweeps:
    """What became of the set, sweep by sweep."""

    kept: Array
    """The share of the equally fast cells that were in it: each of them is truly the fastest."""
    shorter: Array
    """The same with shorter limits."""
    size: float
    bonferroni: float

    def least(self, share: float) -> float:
        """What a true share comes to at least, in 98 of 100 simulations of as many sweeps."""
        return share - 2 * float(self.kept.std()) / math.sqrt(len(self.kept))


def sweeps(noise: str, *, tied: int, groups: int, rounds: int, times: float) -> Sweeps:
    """Fourteen cells, `tied` of them equally fast; limits are `times` as long in the shorter ones."""
    goal, chance = best(), np.random.default_rng([1, groups, tied])
    means = -0.03 * np.maximum(0, np.arange(14) - tied + 1.0)
    names = goal.names(14)
    # where every other cell is noisy the fastest is: the others are no worse off
    equal = set(names[: tied : 2 if noise == "every_other" else 1])
    found = []
    for _ in range(rounds):
        logs = goal.draw(noise_of(noise), chance, means, groups)
        places = rank(names, goal.layout_of(logs))
        members = {place.cell_id for place in places if place.with_best}
        kept, shorter = (len(equal & of) / len(equal) for of in (members, goal.with_limits(places, times)))
        found.append((kept, shorter, len(members), goal.by_bonferroni(logs)))
    kept, shorter, sizes, bonferroni = np.array(found).T
    return Sweeps(kept, shorter, sizes.mean(), bonferroni.mean())


@pytest.mark.parametrize(
    ("noise", "of_bonferroni"),
    [
        *((noise, 0.69) for noise in ("plain", "unequal", "heavy", "as_seen")),
        # every other cell has its own variance
        ("every_other", 0.73),
        ("two_states", 0.82),
    ],
)
def test_the_truly_fastest_cell_stays_in_a_set_much_smaller_than_bonferronis(noise: str, of_bonferroni: float) -> None:
    # of the thirteen rivals that the limits allow for nine are none here, so that it stays 97 to 99 times in 100, and
    # with limits a fifth shorter 92 to 98 times: those are found out below. Here four tenths are, with 75 to 87
    found = sweeps(noise, tied=5, groups=4, rounds=60, times=0.4)
    assert found.kept.mean() >= GOAL
    assert found.shorter.mean() < found.least(GOAL)
    assert found.size <= of_bonferroni * found.bonferroni
    assert found.size - 5 <= 0.55 * (found.bonferroni - 5), "five are truly the fastest"


@pytest.mark.parametrize(
    ("noise", "groups", "times"),
    [
        # whatever is noisier by chance has its own variance: it stays 98 times in 100, a fifth shorter 94, which
        # would take thousands of sweeps to find out, and a quarter shorter 92
        ("plain", 4, 0.75),
        ("unequal", 4, 0.75),
        ("every_other", 4, 0.8),
        # with heavy tails four trials hardly tell what a slow one is, and the limits are so wide that even a fifth
        # shorter they keep it 92 to 97 times in 100; of twelve trials no longer
        ("heavy", 12, 0.8),
        ("two_states", 12, 0.8),
        ("as_seen", 12, 0.8),
    ],
)
def test_with_all_cells_equal_it_stays_whatever_the_noise_and_shorter_limits_would_lose_it(
    noise: str, groups: int, times: float
) -> None:
    found = sweeps(noise, tied=14, groups=groups, rounds=300, times=times)
    assert found.shorter.mean() < found.least(GOAL) < GOAL <= found.kept.mean()


def test_a_fastest_cell_three_times_as_noisy_as_all_others_stays_as_often_and_with_limits_a_fifth_shorter_it_would_not(
    goal: ModuleType,
) -> None:
    found = goal.simulated_set(goal.fastest_noisy, cells=8, tied=8, groups=8, rounds=800)
    assert found.shorter < GOAL <= found.share
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert states(section(page, "Many comparisons"), f"{100 * GOAL:g}")


@pytest.mark.parametrize("noisy", [2, 3])
def test_of_four_cells_of_three_trials_a_noisy_fastest_stays_and_with_limits_a_fifth_shorter_it_would_not(
    goal: ModuleType, noisy: float
) -> None:
    # the worst of 3 to 24 cells and 3 to 12 trials: 94.6 and 94.7 times in 100, of 20,000 sweeps each

    def alone(chance: Chance, cells: int, groups: int) -> Array:
        return np.asarray(goal.plain(chance, cells, groups) * np.where(np.arange(cells), 1, noisy)[:, None])

    found = goal.simulated_set(alone, cells=4, tied=4, groups=3, rounds=1500)
    assert found.shorter < least(1500, GOAL) <= found.share


def test_a_cell_is_in_or_out_by_its_own_limits_whatever_a_noisier_one_below_it_is(goal: ModuleType) -> None:
    chance = np.random.default_rng(6)
    below_one_that_is_out = 0
    for _ in range(60):
        logs = goal.draw(goal.every_other, chance, -0.02 * np.arange(14), 4)
        places = rank(goal.names(14), goal.layout_of(logs))
        for place in places[1:]:
            assert place.against_best is not None
            assert place.against_best.high is not None
            assert place.with_best is (place.against_best.high >= 1)
        flags = [bool(place.with_best) for place in places]
        below_one_that_is_out += flags != sorted(flags, reverse=True)
    assert below_one_that_is_out, "or no cell was noisier than one above it"


@dataclass(frozen=True)
class Many:
    """How the speed-up of the best of fourteen over one base is simulated."""

    rounds: int
    promised: float
    times: float
    """How long the shorter interval is."""
    error: float = 0.026
    """Of the estimate of one sweep."""


# To have been picked makes a cell seem fast, hardly ever slow, so that nearly all misses are those of the lower end,
# which by itself holds 97.5 times in 100. The interval holds 99 times, and a fifth shorter still 95 to 96, so three
# tenths are taken off it (91 to 94: less than is promised), and four where every other cell is noisy, and has its own
# variance. Heavy tails and two states make it wider: there six tenths of it are found out (87 and 93), and where one
# trial in five is slow four tenths (82).
SPEED_UPS = {
    "plain": Many(600, 0.975, 0.7),
    "unequal": Many(400, 0.975, 0.7),
    "every_other": Many(400, GOAL, 0.6, 0.06),
    "heavy": Many(150, GOAL, 0.6),
    "as_seen": Many(150, GOAL, 0.6, 0.045),
    "two_states": Many(150, GOAL, 0.4),
}


@pytest.fixture
def shorter_by(goal: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Has `best.py` look at intervals so many times as long instead of a fifth shorter ones."""
    holds = goal._holds

    def set_to(times: float) -> None:
        monkeypatch.setattr(goal, "_holds", lambda *of: holds(*of[:3], *(times for _ in of[3:])))

    return set_to


@pytest.mark.parametrize("noise", SPEED_UPS)
def test_the_speed_up_of_the_best_of_fourteen_holds_the_truth_and_is_not_too_high(
    goal: ModuleType, noise: str, shorter_by: Callable[[float], None]
) -> None:
    many = SPEED_UPS[noise]
    shorter_by(many.times)
    found = goal.speed_up(noise_of(noise), rounds=many.rounds)
    promised = least(many.rounds, many.promised, 0.975) if many.promised > GOAL else many.promised
    assert found.shorter < promised <= found.share
    assert abs(found.bias) < 0.003 + many.error / many.rounds**0.5  # of the mean of so many sweeps
    assert found.plain_bias > 0.01, "what the fastest of fourteen seems faster than it is"
    if noise == "every_other":
        assert found.plain_share < least(many.rounds, 0.95), "a plain interval would be found out too"


def test_bases_that_are_chosen_too_do_no_harm(goal: ModuleType, shorter_by: Callable[[float], None]) -> None:
    # both ends allow for what was picked, and each is missed more seldom: with 0.8 of it it holds 99 times in 100
    shorter_by(0.4)
    found = goal.speed_up(goal.plain, bases=3, rounds=200)
    assert found.shorter < GOAL <= found.share
    assert abs(found.bias) < 0.004


def test_a_cell_that_is_far_ahead_has_its_plain_ratio(goal: ModuleType) -> None:
    chance = np.random.default_rng(3)
    layout = goal.layout_of(goal.draw(goal.plain, chance, np.array([1.0, 0.5, 0.4, 0.0]), 4))
    names = goal.names(4)
    found = selection.fastest_over(layout, names[:3], names[3:])
    assert found.value == pytest.approx(layout.ratio(names[0], names[3]).interval().value)
    assert found.method == "Dunnett"
    alone, paired = selection.fastest_over(layout, names[:1], names[3:]), layout.ratio(names[0], names[3]).interval()
    assert (alone.low, alone.high) == pytest.approx((paired.low, paired.high))
    assert alone.method == "moderated t"


def test_of_fewer_than_four_blocks_it_is_the_ratio_of_the_two_cells_that_are_named(goal: ModuleType) -> None:
    names = goal.names(8)
    for blocks, is_theirs in ((2, True), (3, True), (4, False)):
        layout = goal.layout_of(goal.draw(goal.plain, np.random.default_rng(5), np.zeros(8), blocks))
        ranked = sorted(names, key=lambda name: -layout.mean(name))
        cells = [name for name in ranked if name in names[:5]]
        bases = [name for name in ranked if name in names[5:]]
        found = selection.fastest_over(layout, cells, bases)
        theirs = layout.ratio(cells[0], bases[0]).interval().value
        assert (found.value == pytest.approx(theirs, rel=1e-9)) is is_theirs, blocks
