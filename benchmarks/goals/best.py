"""How often the truly fastest cell is in the set of those that may be the fastest, and how large that set is; and how
often the headline's speed-up, of a cell that was chosen as the best of many, holds the truth.

Simulated as a sweep measures: every cell once in each group, groups that drift, a few trials a cell. The set is to
keep the truly fastest cell, and the interval to hold the truth, at least 94.5 times in 100. Beside it what the rule
would do were its limits a fifth shorter, and the set by Bonferroni's rule over plain paired intervals.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from common import table
from series import Array, Chance

from harness.analysis.estimates.intervals import CONFIDENCE, Interval, Sample, log_ratio, t_quantile
from harness.analysis.estimates.layout import Layout
from harness.analysis.estimates.power import lower_limit, upper_limit
from harness.analysis.estimates.selection import fastest_over
from harness.analysis.ranking import Place, rank

GOAL = 0.945
SPREAD = 0.03
"""Of a trial beside its group, as in the reference run (0.02 to 0.08)."""
DRIFT = 0.1
Noise = Callable[[Chance, int, int], Array]
"""(chance, cells, groups) → the deviations of the trials, the truly fastest cell first."""


def plain(chance: Chance, cells: int, groups: int) -> Array:
    """Normal, all alike."""
    return chance.standard_normal((cells, groups))


def unequal(chance: Chance, cells: int, groups: int) -> Array:
    """Normal; cells' deviations differ by a factor of 1.5 up or down."""
    return plain(chance, cells, groups) * np.exp(chance.normal(0, math.log(1.5), (cells, 1)))


def every_other(chance: Chance, cells: int, groups: int) -> Array:
    """Normal; every other cell, the fastest among them, is 2.5 times as noisy."""
    return plain(chance, cells, groups) * np.where(np.arange(cells) % 2, 1, 2.5)[:, None]


def heavy(chance: Chance, cells: int, groups: int) -> Array:
    """Student's t with three degrees of freedom."""
    return chance.standard_t(3, (cells, groups)) / math.sqrt(3)


def two_states(chance: Chance, cells: int, groups: int) -> Array:
    """One trial in five is in a slow state."""
    return 2.5 * (0.2 - (chance.random((cells, groups)) < 0.2))


def fastest_noisy(chance: Chance, cells: int, groups: int) -> Array:
    """Normal; the fastest cell alone is three times as noisy as all others: moderation takes most from it."""
    return plain(chance, cells, groups) * np.where(np.arange(cells), 1, 3)[:, None]


NOISES: tuple[Noise, ...] = (plain, unequal, every_other, heavy, two_states, fastest_noisy)


@dataclass(frozen=True)
class Kept:
    """What became of the set."""

    share: float
    """How often the truly fastest cell was in it."""
    size: float
    """Its mean size, the best cell included."""
    bonferroni: float
    """That of the set by Bonferroni's rule over plain paired intervals."""
    shorter: float
    """How often the truly fastest cell would be in it were the limits a fifth shorter."""


def names(count: int) -> list[str]:
    """Of so many cells, the truly fastest first."""
    return [f"c{place:03}" for place in range(count)]


def layout_of(logs: Array) -> Layout:
    """Of (cells, groups)."""
    blocks = tuple(range(logs.shape[1]))
    groups = tuple(f"g{block}" for block in blocks)
    rows = zip(names(len(logs)), logs.tolist(), strict=True)
    return Layout({name: Sample(tuple(row), groups, blocks) for name, row in rows})


def draw(noise: Noise, chance: Chance, means: Array, groups: int) -> Array:
    """ln X of every trial, (cells, groups)."""
    return means[:, None] + SPREAD * noise(chance, len(means), groups) + chance.normal(0, DRIFT, groups)


def simulated_set(
    noise: Noise, *, tied: int, cells: int = 14, groups: int = 4, rounds: int = 400, seed: int = 1
) -> Kept:
    """`tied` cells are equally fast, each of the others 3 % slower than the one before it."""
    chance = np.random.default_rng([seed, cells, groups, tied])
    means = -0.03 * np.maximum(0, np.arange(cells) - tied + 1.0)
    found = sizes = bonferroni = shorter = 0
    for _ in range(rounds):
        logs = draw(noise, chance, means, groups)
        places = rank(names(cells), layout_of(logs))
        members = [place.cell_id for place in places if place.with_best]
        found += names(cells)[0] in members
        sizes += len(members)
        shorter += names(cells)[0] in with_limits(places, 0.8)
        bonferroni += by_bonferroni(logs)
    return Kept(found / rounds, sizes / rounds, bonferroni / rounds, shorter / rounds)


def with_limits(places: Sequence[Place], times: float) -> set[str]:
    """The set by the same rule with limits `times` as long."""
    inside = {places[0].cell_id}
    for place in places[1:]:
        against = place.against_best
        assert against is not None
        assert against.high is not None
        mean = math.log(against.value)
        if mean + times * (math.log(against.high) - mean) >= 0:
            inside.add(place.cell_id)
    return inside


def by_bonferroni(logs: Array) -> int:
    """How many cells are not slower beyond doubt than the best by paired t at 1 − 0.05/(k − 1)."""
    differences = logs - logs[logs.mean(axis=1).argmax()]
    spread = differences.std(axis=1, ddof=1) / math.sqrt(logs.shape[1])
    limit = t_quantile(logs.shape[1] - 1, 1 - (1 - CONFIDENCE) / (len(logs) - 1))
    return int((differences.mean(axis=1) + limit * spread >= 0).sum())


@dataclass(frozen=True)
class Held:
    """What became of the headline's speed-up."""

    share: float
    """How often its interval held the truth of the cell that was chosen, over the base that was."""
    bias: float
    """Mean of the estimate less that truth, on the log scale."""
    shorter: float
    """The same as `share`, of an interval a fifth shorter."""
    plain_share: float
    """The same of the chosen cell's plain paired interval and mean."""
    plain_bias: float


def speed_up(
    noise: Noise, *, cells: int = 14, bases: int = 1, groups: int = 4, rounds: int = 400, seed: int = 1
) -> Held:
    """Distributed cells whose truths lie within 2 % of each other, 20 % above the bases, which are as close."""
    chance = np.random.default_rng([seed, cells, bases, groups])
    found = []
    for _ in range(rounds):
        means = np.concatenate([0.2 + chance.uniform(-0.01, 0.01, cells), chance.uniform(-0.01, 0.01, bases)])
        layout = layout_of(logs := draw(noise, chance, means, groups))
        ordered = sorted(range(len(means)), key=lambda place: -layout.mean(names(len(means))[place]))
        fast, slow = [p for p in ordered if p < cells], [p for p in ordered if p >= cells]
        truth = means[fast[0]] - means[slow[0]]
        of = names(len(means))
        ours = fastest_over(layout, [of[place] for place in fast], [of[place] for place in slow])
        trials = [
            Sample(tuple(logs[place].tolist()), tuple(f"g{g}" for g in range(groups))) for place in (fast[0], slow[0])
        ]
        theirs = log_ratio(*trials).interval()
        middle = layout.ratio(of[fast[0]], of[slow[0]]).mean
        found.append(
            (
                _holds(ours, truth, middle),
                math.log(ours.value) - truth,
                _holds(ours, truth, middle, 0.8),
                _holds(theirs, truth, math.log(theirs.value)),
                math.log(theirs.value) - truth,
            )
        )
    return Held(*np.mean(found, axis=0).tolist())


def _holds(found: Interval, truth: float, middle: float, times: float = 1.0) -> bool:
    """Whether `truth` lies in `times` the interval, of which `middle` is the middle, both logarithms."""
    if found.low is None or found.high is None:
        return False
    low, high = (middle + times * (math.log(end) - middle) for end in (found.low, found.high))
    return low <= truth <= high


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    rounds = parser.parse_args().rounds
    print(f"14 cells, 4 trials each, {rounds:,} sweeps a row\n")
    heads = ("noise", "tied", "fastest kept", "", "a fifth shorter", "cells in the set", "by Bonferroni")
    rows: list[Sequence[str]] = [heads]
    for noise in NOISES:
        for tied in (5, 14):
            of = simulated_set(noise, tied=tied, rounds=rounds)
            rows.append(
                (
                    noise.__name__,
                    str(tied),
                    f"{of.share:.1%}",
                    _mark(of.share, rounds),
                    f"{of.shorter:.1%}",
                    f"{of.size:.1f}",
                    f"{of.bonferroni:.1f}",
                )
            )
    table(rows)
    print("\nthe speed-up of the best of 14 near-equal cells\n")
    rows = [("noise", "bases", "held", "", "a fifth shorter", "bias", "plain interval held", "plain bias")]
    for noise in NOISES:
        for bases in (1, 3):
            held = speed_up(noise, bases=bases, rounds=rounds)
            rows.append(
                (
                    noise.__name__,
                    str(bases),
                    f"{held.share:.1%}",
                    _mark(held.share, rounds),
                    f"{held.shorter:.1%}",
                    f"{held.bias:+.2%}",
                    f"{held.plain_share:.1%}",
                    f"{held.plain_bias:+.2%}",
                )
            )
    table(rows)


def _mark(share: float, rounds: int) -> str:
    """Met, or missed, where the one-sided 95 % limit of the share says so."""
    count = round(share * rounds)
    if lower_limit(count, rounds) >= GOAL:
        return "met"
    return "TOO LOW" if upper_limit(count, rounds) < GOAL else "not shown"


if __name__ == "__main__":
    main()
