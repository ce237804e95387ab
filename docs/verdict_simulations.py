"""The numbers behind the pictures of docs/verdicts.md: series with a known truth, judged by the project's own rules.

Nothing here was measured. Seeds are fixed, so that text and pictures can state what comes out.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.analysis.estimates.intervals import CONFIDENCE, LogEstimate, Sample, log_mean, t_quantile
from harness.analysis.estimates.layout import Layout
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.verdict import Judgement, Margins, judge, judge_all
from harness.analysis.ranking import rank
from harness.looks import MAX_BLOCKS, looks_within

Array = NDArray[np.float64]
MARGINS = Margins()
LOOKS = replace(Looks.planned(looks_within(MAX_BLOCKS)), steps=0.9)
"""Of windows of 20 ms, of which 2 ms are no steps."""


@dataclass(frozen=True)
class Example:
    """One interval of the first picture: B against A in percent, and the spread of its twelve pairs in percent."""

    change: float
    deviation: float
    words: str

    @property
    def judgement(self) -> Judgement:
        """What the project says of it."""
        return judge(of_pairs(math.log1p(self.change / 100), self.deviation / 100, 12), MARGINS)


EXAMPLES = (
    Example(-4.0, 1.6, "the whole interval lies beyond −δ"),
    Example(3.2, 1.4, "the whole interval lies beyond +δ"),
    Example(2.0, 0.9, "beyond δ, within ε: δ is asked first"),
    Example(0.2, 1.3, "within ε on both sides"),
    Example(-0.8, 0.8, "beyond 0, not beyond δ, within ε"),
    Example(-2.2, 2.4, "beyond 0, not beyond δ, not within ε"),
    Example(0.4, 6.5, "says next to nothing"),
)
"""One for each verdict that has an interval, and the cases that are taken for another."""


def of_pairs(mean: float, deviation: float, pairs: int) -> LogEstimate:
    """The estimate that so many pairs of that mean and standard deviation give."""
    return LogEstimate(mean, deviation / math.sqrt(pairs), pairs - 1, deviation, pairs, "paired t")


@dataclass(frozen=True)
class Rates:
    """How often each verdict is given, as shares that sum to 1."""

    slower: float
    undecided: float
    equivalent: float
    faster: float
    blocks: float = 0.0
    """Blocks run, on average."""


def rates(deviation: float, change: float, repetitions: int = 20_000, looks: Looks = LOOKS) -> Rates:
    """Verdicts of looks, those of `ab`, on pairs of that true change of throughput and standard deviation.

    Both are shares: −0.03 is 3 % less throughput, of the steps; a window shows as much of it as is steps.
    """
    chance = np.random.default_rng([7, round(1e6 * deviation)])
    pairs = chance.normal(looks.steps * math.log1p(change), deviation, (repetitions, looks.after[-1]))
    different, equivalent = (np.zeros(repetitions, bool) for _ in range(2))
    means, blocks = np.zeros(repetitions), np.full(repetitions, looks.after[-1])
    sums, squares = pairs.cumsum(axis=1), (pairs**2).cumsum(axis=1)
    for after, of_delta, of_epsilon in zip(looks.after, looks.different, looks.equivalent, strict=True):
        going = ~(different | equivalent)
        mean = sums[:, after - 1] / after
        error = np.sqrt((squares[:, after - 1] - after * mean**2) / (after - 1) / after)
        beyond = np.abs(mean) - MARGINS.log_delta >= -special.stdtrit(after - 1, of_delta) * error
        within = looks.steps * MARGINS.log_epsilon - np.abs(mean) >= -special.stdtrit(after - 1, of_epsilon) * error
        different |= going & beyond
        equivalent |= going & within & ~beyond
        means[going & beyond] = mean[going & beyond]
        blocks[going & (beyond | within)] = after
    return Rates(
        slower=float((different & (means < 0)).mean()),
        undecided=float((~different & ~equivalent).mean()),
        equivalent=float(equivalent.mean()),
        faster=float((different & (means > 0)).mean()),
        blocks=float(blocks.mean()),
    )


def drift(chance: np.random.Generator, count: int, deviation: float = 0.07) -> Array:
    """Log speed of a machine that wanders, one value a window: a first-order autoregression."""
    kept = 0.97
    steps = chance.normal(0, deviation * math.sqrt(1 - kept**2), count)
    state, states = float(chance.normal(0, deviation)), []
    for step in steps:
        state = kept * state + float(step)
        states.append(state)
    return np.array(states)


@dataclass(frozen=True)
class Turns:
    """Relative throughput of every window of the same code on both sides, and who took it (False is A)."""

    throughput: Array
    is_b: NDArray[np.bool_]

    @property
    def difference(self) -> float:
        """By how much B seems to differ from A, as a share."""
        return float(self.throughput[self.is_b].mean() / self.throughput[~self.is_b].mean() - 1)


def turns(count: int = 120, seed: int = 1) -> tuple[Turns, Turns]:
    """The same wandering machine seen twice: A and then B, and A and B in turn."""
    chance = np.random.default_rng(seed)
    speed = drift(chance, count) + chance.normal(0, 0.02, count)
    throughput = np.exp(speed - speed.mean())
    after = np.arange(count) >= count // 2
    order = np.concatenate([chance.permutation([False, True]) for _ in range(count // 2)])
    return Turns(throughput, after), Turns(throughput, order)


def turns_scatter(machines: int = 600) -> tuple[float, float]:
    """Standard deviation of the difference over many such machines: one after the other, and taking turns."""
    found = np.array([[way.difference for way in turns(seed=seed)] for seed in range(machines)])
    return float(found[:, 0].std()), float(found[:, 1].std())


@dataclass(frozen=True)
class Blocks:
    """Log ratios of windows (blocks, windows) of the same code on both sides, and two intervals of their mean."""

    windows: Array

    @property
    def from_windows(self) -> tuple[float, float]:
        """What all windows as one sample give: too short."""
        return _bounds(log_mean(self.windows.ravel().tolist(), "t"))

    @property
    def from_blocks(self) -> tuple[float, float]:
        """One value a block."""
        return _bounds(log_mean(self.windows.mean(axis=1).tolist(), "paired t"))


def blocks(seed: int = 14) -> Blocks:
    """Each process is a little faster or slower for as long as it lives, and its windows scatter about that."""
    chance = np.random.default_rng(seed)
    own = chance.normal(0, 0.02, (6, 1))
    return Blocks(own + chance.normal(0, 0.03, (6, 60)))


def blocks_coverage(repetitions: int = 1000) -> tuple[float, float]:
    """How often either interval, which claims 95 %, holds the truth: from windows, and from blocks."""
    made = [blocks(seed) for seed in range(repetitions)]
    held = [[low <= 0 <= high for low, high in (one.from_windows, one.from_blocks)] for one in made]
    shares = np.mean(held, axis=0)
    return float(shares[0]), float(shares[1])


def _bounds(estimate: LogEstimate) -> tuple[float, float]:
    found = estimate.log_bounds()
    assert found is not None, "two values or more have a spread"
    return found


def peeking(looks: int, repetitions: int = 20_000) -> float:
    """How often the same thing differs from itself at some of `looks` looks, the first of them after three pairs."""
    chance = np.random.default_rng(11)
    pairs = chance.standard_normal((repetitions, looks + 2))
    counts = np.arange(1, looks + 3)
    means = pairs.cumsum(axis=1) / counts
    squares = (pairs**2).cumsum(axis=1) - counts * means**2
    error = np.sqrt(squares[:, 2:] / (counts[2:] - 1) / counts[2:])
    limits = np.array([t_quantile(count - 1) for count in counts[2:]])
    return float((np.abs(means[:, 2:]) > limits * error).any(axis=1).mean())


def many(count: int = 40) -> tuple[tuple[Judgement, ...], tuple[Judgement, ...]]:
    """The same thing against itself, `count` times, with no margin: alone, and by Benjamini and Hochberg."""
    chance = np.random.default_rng(6)
    estimates = [log_mean(chance.normal(0, 0.016, 6).tolist(), "paired t") for _ in range(count)]
    no_margin = Margins(0.0, 0.03)
    return judge_all(estimates, no_margin), judge_all(estimates, no_margin, "fdr")


def any_of(count: int) -> float:
    """The chance that some of `count` independent true 95 % intervals misses."""
    return 1 - CONFIDENCE**count


def best() -> list[tuple[float, float, float]]:
    """Cells against the one that looked best in six blocks: ratio and simultaneous interval, that one left out."""
    chance = np.random.default_rng(3)
    truths = np.log([1.0, 1.0, 0.995, 0.97, 0.94, 0.92])
    logs = truths[:, None] + chance.normal(0, 0.012, (len(truths), 6))
    blocks = tuple(range(6))
    samples = {str(cell): Sample(tuple(row), tuple(map(str, blocks)), blocks) for cell, row in enumerate(logs.tolist())}
    against = [place.against_best for place in rank(samples, Layout(samples))[1:]]
    return [(one.value, one.low or 0.0, one.high or math.inf) for one in against if one is not None]


def stragglers(steps: int = 4000) -> tuple[Array, Array]:
    """Step times in ms of two sides: in B one step in twelve waits 60 % longer, and nothing else differs."""
    chance = np.random.default_rng(5)
    a, b = 10 * np.exp(chance.normal(0, 0.02, (2, steps)))
    b[chance.random(steps) < 1 / 12] *= 1.6
    return a, b
