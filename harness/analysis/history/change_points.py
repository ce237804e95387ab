"""Change points of a series of runs: E-divisive, with a permutation test that heeds autocorrelation.

E-divisive (Matteson & James 2014, *A nonparametric approach for multiple change point analysis of multivariate
data*, JASA 109) splits a series where the energy distance between the values before and after is largest, keeps the
split when a permutation test finds it significant, and goes on within the parts. MongoDB finds changes in its own
performance tests so (Daly et al. 2020, ICPE), and Hunter is made of the same (Fleming et al. 2023, ICPE).

The test takes values to be exchangeable while nothing changes. Those of one machine are not: a busy week raises
several runs in a row. Where what a split leaves over is correlated from one run to the next, blocks of runs are
permuted instead of single ones (Kirch 2007, *Block permutation principles for the change analysis of dependent data*,
J. Stat. Plan. Inference 137), as long as the correlation reaches. How often it still cries wolf, and what it finds, is
measured by `benchmarks/goals/history.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import HarnessError

SIGNIFICANCE = 0.01
"""Of each permutation test: the share of false alarms in a series in which nothing changes."""
SMALLEST = 3
"""Fewest runs on either side of a change point."""
WINDOW = 100
"""Runs that are looked at together: the test takes the square of their number. Where a window has no change, the next
begins STRIDE runs later; else it begins at its last change."""
STRIDE = WINDOW // 2
FEWEST = 9
"""Runs from which a change can be found: of 8, halves can be drawn in 35 ways, which is no 1 in 100."""
PERMUTATIONS = 999
_BATCH = 111
_ENOUGH = 20
"""Exceedances after which the rest need not be drawn: p is then far above SIGNIFICANCE (Besag & Clifford 1991)."""
_LEVEL_5 = 1.645
_MOST_R = 0.95
Array = NDArray[np.float64]


@dataclass(frozen=True)
class ChangePoint:
    """`index` is the first value of the new level; `p_value` that of its permutation test."""

    index: int
    p_value: float


def change_points(values: Sequence[float], significance: float = SIGNIFICANCE) -> list[ChangePoint]:
    """Where the level or spread of `values` changes, in order. The same values give the same answer.

    Values must be finite (HarnessError); of fewer than FEWEST nothing is said.
    """
    series = np.asarray(values, dtype=np.float64)
    if not np.isfinite(series).all():
        raise HarnessError("a series for change points holds a value that is not finite")
    chance = np.random.default_rng(1)
    # of as many windows as there are without a change; a p-value of the permutations can be no smaller than its floor
    windows = 1 + max(0, math.ceil((len(series) - WINDOW) / STRIDE))
    significance = max(significance / windows, 1 / (PERMUTATIONS + 1))
    found: list[ChangePoint] = []
    start = 0
    while True:
        within = _within(series, start, min(start + WINDOW, len(series)), significance, chance)
        found += within
        if start + WINDOW >= len(series):
            return found
        start = within[-1].index if within else start + STRIDE


def _within(
    series: Array, first: int, last: int, significance: float, chance: np.random.Generator
) -> list[ChangePoint]:
    """The changes in one window of `series`, in order."""
    found: list[ChangePoint] = []
    parts = [(first, last)]
    while parts:
        start, end = parts.pop()
        if end - start < max(FEWEST, 2 * SMALLEST):
            continue
        part = series[start:end]
        split, p_value = _best_split(part, chance)
        if p_value <= significance:
            found.append(ChangePoint(start + split, p_value))
            parts += [(start, start + split), (start + split, end)]
    return sorted(found, key=lambda change: change.index)


def _best_split(part: Array, chance: np.random.Generator) -> tuple[int, float]:
    """(first index of the second part, p-value) of the split with the largest energy distance."""
    distances = np.abs(part[:, None] - part[None, :])
    table = _energy(distances[None])[0]
    split, end = (int(place) for place in np.unravel_index(np.argmax(table), table.shape))
    largest = table[split, end]
    if not largest > 0:
        return split, 1.0
    block = _block_length(part, split, end)
    exceeded = drawn = 0
    while drawn < PERMUTATIONS and exceeded < _ENOUGH:
        orders = np.stack([_permuted(len(part), block, chance) for _ in range(min(_BATCH, PERMUTATIONS - drawn))])
        permuted = _energy(distances[orders[:, :, None], orders[:, None, :]]).max(axis=(1, 2))
        # rounding must not decide between an order and its mirror image
        exceeded += int((permuted >= largest * (1 - 1e-9)).sum())
        drawn += len(orders)
    return split, (exceeded + 1) / (drawn + 1)


def _energy(distances: Array) -> Array:
    """The scaled energy distance at [series, t, e]: x are the values before t, y those from t to before e.

    Q = km/(k+m)·(2·mean |x−y| − mean |x−x'| − mean |y−y'|) of k values x and m values y; −inf where either has fewer
    than SMALLEST. That y may end before the series does finds a level that was left again.
    """
    count = distances.shape[1]
    sums = np.zeros((len(distances), count + 1, count + 1))
    sums[:, 1:, 1:] = distances.cumsum(axis=1).cumsum(axis=2)
    t, e = np.arange(count + 1)[:, None], np.arange(count + 1)[None, :]
    k, m = t, e - t
    within = sums[:, np.arange(count + 1), np.arange(count + 1)]
    before, both = within[:, :, None], within[:, None, :]
    across = sums - before
    after = both - 2 * across - before
    valid = (k >= SMALLEST) & (m >= SMALLEST)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = k * m / (k + m) * (2 * across / (k * m) - before / (k * (k - 1)) - after / (m * (m - 1)))
    return np.where(valid, value, -np.inf)


def _permuted(count: int, block: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """An order of `count` places in which runs of `block` places stay together; where they begin is drawn too."""
    if block <= 1:
        return chance.permutation(count)
    rolled = np.roll(np.arange(count), int(chance.integers(count)))
    pieces = [rolled[place : place + block] for place in range(0, count, block)]
    return np.concatenate([pieces[place] for place in chance.permutation(len(pieces))])


def _block_length(part: Array, split: int, end: int) -> int:
    """Places over which values are correlated beyond their levels: 1 when they are not.

    The lag-1 autocorrelation r of what the levels before `split`, up to `end` and after it leave over; when it is
    significantly above 0 at 5 %, (1 + r)/(1 − r) values are worth one (AR(1)).
    """
    left = np.concatenate([piece - piece.mean() for piece in np.split(part, [split, end]) if len(piece)])
    power = float(np.dot(left, left))
    r = float(np.dot(left[1:], left[:-1])) / power if power > 0 else 0.0
    if r <= _LEVEL_5 / math.sqrt(len(part)):
        return 1
    return min(len(part) // 2, math.ceil((1 + r) / (1 - min(r, _MOST_R))))
