"""Trials as a two-way layout of cells and groups, fitted to all cells of a run (`docs/protocol.md#estimators`).

Trials of a group were alive together and took turns, so what the machine did to one it did to all, and the group's
effect takes it out: the cells' effects are their order, also where memory split a block into groups or a trial was
lost. What a cell scatters by beyond that is moderated (`docs/protocol.md#moderated-variances`): four trials hardly know
their own variance, and the other cells of the run know something of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.analysis.estimates.intervals import CONFIDENCE, LogEstimate, Sample, own_estimate, welch

Array = NDArray[np.float64]
_NONE = 1e-9
"""A residual's share of its trial's variance below which the trial says nothing about scatter."""
_MOST = 1.5
"""The most degrees of freedom that the common variance is worth. With 3, the truly fastest cell of a sweep is kept less
often than 94.5 times in 100 where every other cell scatters much more (`benchmarks/goals/best.py`); with ¾, intervals
of three trials are 15 % wider."""
_NOISY = 1.5
"""How many times the mean of the others' variances that of a cell is which has its own instead, and half its degrees of
freedom where that is less: two or three trials hardly show that a cell is noisy, and moderation lends them most. With
1 from four trials on, every other interval of them is wider by 6 %, and holds the truth 0.3 points more often."""
_SMALLEST = 1e-5
"""The least variance of a cell, as a share of the median one: identical trials have none, and its logarithm is used."""


def prior(variances: Array, freedom: Array) -> tuple[float, float]:
    """(d₀, s₀²): what the variance that cells have in common is worth in degrees of freedom, and that variance.

    `variances` and their `freedom` have an entry a cell. See `docs/protocol.md#moderated-variances`.
    """
    most, mean = min(_MOST, float(freedom.mean())), float(np.average(variances, weights=freedom))
    half, least = freedom / 2, _SMALLEST * float(np.median(variances))
    if len(variances) < 2 or least == 0:
        return most, mean
    logs = np.log(np.maximum(variances, least)) - special.digamma(half) + np.log(half)
    excess = float(np.var(logs, ddof=1) - np.mean(special.polygamma(1, half)))
    if excess <= special.polygamma(1, most / 2):
        return most, mean
    place = 0.5 + 1 / excess
    for _ in range(20):  # Newton's method on 1/trigamma, which is nearly a line (Smyth 2004, appendix)
        value = float(special.polygamma(1, place))
        place += value * (1 - value / excess) / float(special.polygamma(2, place))
    return 2 * place, float(np.exp(logs.mean() + special.digamma(place)) / place)


@dataclass(frozen=True)
class _Fit:
    """Least squares of x = cell + group, solved for whichever there are fewer of: a run may have thousands of one."""

    cell: NDArray[np.intp]
    group: NDArray[np.intp]
    value: Array
    counts: Array
    """Trials of each cell in each group, (cells, groups)."""
    inverse: Array
    """Pseudo-inverse of the normal equations of the fewer (few, few), the others' effects eliminated. Not `lstsq`: that
    solves for effects alone, and leverages and covariances need the inverse itself."""
    component: NDArray[np.intp]
    """A number for each cell, the same for cells that are linked by groups which cells share."""
    cells: Array
    groups: Array

    @classmethod
    def of(cls, samples: Mapping[str, Sample]) -> "_Fit":
        index = {name: place for place, name in enumerate(dict.fromkeys(g for s in samples.values() for g in s.groups))}
        cell = np.array([place for place, sample in enumerate(samples.values()) for _ in sample.values], dtype=np.intp)
        group = np.array([index[name] for sample in samples.values() for name in sample.groups], dtype=np.intp)
        value = np.array([x for sample in samples.values() for x in sample.values])
        counts, sums = np.zeros((2, len(samples), len(index)))
        np.add.at(counts, (cell, group), 1)
        np.add.at(sums, (cell, group), value)
        few, total = _fewer_first(counts), _fewer_first(sums)
        shares = few / few.sum(axis=0)
        inverse = np.linalg.pinv(np.diag(few.sum(axis=1)) - shares @ few.T, hermitian=True)
        effects = inverse @ (total.sum(axis=1) - shares @ total.sum(axis=0))
        others = (total - few * effects[:, None]).sum(axis=0) / few.sum(axis=0)
        cells, groups = (effects, others) if few is counts else (others, effects)
        component = _components(cell, group, counts.shape)
        # the level is free in x = cell + group: within what is linked, keep the mean over all trials where it is
        linked = component[cell]
        level = np.bincount(linked, groups[group], len(cells)) / np.maximum(
            1, np.bincount(linked, minlength=len(cells))
        )
        of_group = np.zeros(len(groups), dtype=np.intp)
        of_group[group] = linked
        cells, groups = cells + level[component], groups - level[of_group]
        return cls(cell, group, value, counts, inverse, component, cells, groups)

    @property
    def freedom(self) -> NDArray[np.intp]:
        """Of each cell, the trials less parameters of all the cells that it is linked with, itself included."""
        of_group = np.zeros(len(self.groups), dtype=np.intp)
        of_group[self.group] = self.component[self.cell]
        trials, cells, groups = (
            np.bincount(of, minlength=len(self.cells)) for of in (self.component[self.cell], self.component, of_group)
        )
        found: NDArray[np.intp] = (trials - cells - groups + 1)[self.component]
        return found

    def spread(self) -> tuple[Array, Array]:
        """(variance, its degrees of freedom) of each cell from its own residuals; NaN and 0 where none tells."""
        few = _fewer_first(self.counts)
        shares = few / few.sum(axis=0)
        reach = self.inverse @ shares
        lever = 1 / few.sum(axis=0) + (shares * reach).sum(axis=0) - 2 * reach + np.diag(self.inverse)[:, None]
        leverage = lever if few is self.counts else lever.T
        free = 1 - leverage[self.cell, self.group]
        told = free > _NONE
        residual = (self.value - self.cells[self.cell] - self.groups[self.group]) ** 2
        count = len(self.cells)
        freedom = np.maximum(0, np.bincount(self.cell, told, count) - 1)
        total = np.bincount(self.cell, residual * told, count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(freedom > 0, total / np.bincount(self.cell, free * told, count), np.nan), freedom

    def covariance(self, variances: Array) -> Array:
        """Of the cells' effects, from the variance of a trial of each cell; its differences alone mean something."""
        few, weighted = _fewer_first(self.counts), _fewer_first(self.counts * variances[:, None])
        shares = few / few.sum(axis=0)
        crossed = weighted @ shares.T
        middle = np.diag(weighted.sum(axis=1)) - crossed - crossed.T + (shares * weighted.sum(axis=0)) @ shares.T
        if few is self.counts:
            found: Array = self.inverse @ middle @ self.inverse
            return found
        reach = shares.T @ self.inverse
        with_own: Array = np.diag(variances / self.counts.sum(axis=1)) + reach @ middle @ reach.T
        return with_own


class Layout:
    """The fit of all measured cells of a run, and every comparison that it allows."""

    def __init__(self, samples: Mapping[str, Sample], pilot_blocks: int | None = None) -> None:
        """`pilot_blocks` is the number of blocks of the first stage where a second was planned from its spread.

        The variances are then those of the first stage (Stein 1945), the means those of all trials.
        """
        self._samples = dict(samples)
        self._places = {name: place for place, name in enumerate(samples)}
        self._pilot_blocks = pilot_blocks
        if not samples:
            return
        self._fit = _Fit.of(samples)
        self._variances, self._freedom, self._own, self._most = self._moderated()
        self._covariance = self._fit.covariance(self._variances)

    def mean(self, name: str) -> float:
        """ln X of the cell at the machine's mean speed over groups.

        Groups that share no cell with the others cannot be adjusted; their cells keep their plain means.
        """
        return float(self._fit.cells[self._places[name]])

    def by_block(self, names: Sequence[str]) -> Array:
        """ln X of the cells in each block, less what its groups had in common: (cells, blocks), NaN without a trial."""
        blocks = np.array([block for sample in self._samples.values() for block in sample.blocks])
        _, block = np.unique(blocks, return_inverse=True)
        sums, counts = np.zeros((2, len(self._samples), block.max() + 1))
        np.add.at(sums, (self._fit.cell, block), self._fit.value - self._fit.groups[self._fit.group])
        np.add.at(counts, (self._fit.cell, block), 1)
        with np.errstate(invalid="ignore"):
            found: Array = (sums / counts)[[self._places[name] for name in names]]
        return found

    def met(self, name: str, base: str) -> bool:
        """Whether the two took turns with each other, or with others that link them."""
        return bool(self._fit.component[self._places[name]] == self._fit.component[self._places[base]])

    def linked(self, name: str, base: str) -> bool:
        """Whether the layout compares the two; else they never met, and `ratio` is Welch's."""
        return bool(self._most[self._places[name]] > 0) and self.met(name, base)

    def ratio(self, name: str, base: str, to_best: bool = False) -> LogEstimate:
        """ln X_name/X_base: the difference of the effects, with moderated variances; Welch's where they never met.

        ν is Satterthwaite's of the two cells' variances, with d₀ + d degrees of freedom each, and at most that of
        all residuals of the cells that they are linked with. A noisy cell has its own variance, with d. Not so a base
        `to_best`, the best of a ranking: sets would be larger by 2 to 5 %, and keep the fastest as they should without.
        """
        if not self.linked(name, base):
            return self._apart(name, base)
        one, two = self._places[name], self._places[base]
        mean = float(self._fit.cells[one] - self._fit.cells[two])
        known = self._covariance
        square = float(known[one, one] + known[two, two] - 2 * known[one, two])
        parts, free = self._variances[[one, two]], self._freedom[[one, two]]
        for side, (cell, place) in enumerate([(name, one)] if to_best else [(name, one), (base, two)]):
            if self._own[0, place] > 0:
                square += float(self._own[0, place] - parts[side]) / len(self._samples[cell].values)
                parts[side], free[side] = self._own[:, place]
        error, total = math.sqrt(max(0.0, square)), parts.sum()
        spread = ((parts / total) ** 2 / free).sum() if total else 0.0
        most = float(self._most[one])
        freedom = min(most, 1 / spread if spread else most)
        count = min(len(self._samples[of].values) for of in (name, base))
        return LogEstimate(mean, error, freedom, error * math.sqrt(count), count, "moderated t")

    def correlation(self, common: str, others: Sequence[str]) -> float | None:
        """The mean correlation between the differences of `common` to each of `others`; None unless all are linked.

        From what the trials of `common` add to each: what else two differences share makes them more alike, and the
        limit that is found without it a little wide. The mean stands for all in Dunnett's distribution (Hochberg &
        Tamhane 1987, section 5.3).
        """
        own, places = self._places[common], np.array([self._places[name] for name in others])
        if not self._most[own] or (self._fit.component[places] != self._fit.component[own]).any():
            return None
        if len(others) < 2:
            return 0.0
        known = self._covariance
        squares = known[own, own] + known[places, places] - 2 * known[own, places]
        share = self._variances[own] / len(self._samples[common].values) / np.maximum(squares, np.finfo(float).tiny)
        share = np.minimum(share, 1.0)
        count = len(others)
        mean = (np.sqrt(share).sum() ** 2 - share.sum()) / (count * (count - 1))
        return float(min(mean, 0.99))

    def _apart(self, name: str, base: str) -> LogEstimate:
        """Welch's, of cells that no group links, or where no residual tells how trials scatter."""
        found = welch(*(own_estimate(self._samples[of], self._pilot_blocks) for of in (name, base)))
        if found.standard_error is not None or not self.met(name, base):
            return found
        return replace(found, mean=self.mean(name) - self.mean(base))

    def _moderated(self) -> tuple[Array, Array, Array, Array]:
        """Of each cell (the variance of a trial, its degrees of freedom, both of a noisy cell alone, the degrees of
        freedom of all residuals that tell of it).

        Each from the cells that it is linked with: the residuals of two cells that met nobody else mirror each other,
        and other models scatter in their own way. By itself a noisy cell is taken where that makes intervals longer.
        """
        fit, names = self._fit, list(self._samples)
        if self._pilot_blocks is not None:
            first = {name: part for name, s in self._samples.items() if (part := s.before(self._pilot_blocks))}
            fit, names = _Fit.of(first), list(first)
        found, own = fit.spread()
        variances, freedom = np.full((2, len(self._samples)), np.nan)
        places = [self._places[name] for name in names]
        variances[places], freedom[places] = found, own
        told, component = freedom > 0, self._fit.component
        freedom, variances = np.where(told, freedom, 0.0), np.where(told, variances, 0.0)
        moderated, worth, noisy, most = np.zeros((4, len(told)))
        np.maximum.at(most, component[places], fit.freedom)
        for number in np.unique(component[told]):
            linked = component == number
            known = linked & told
            worth[linked], common = prior(variances[known], freedom[known])
            noisy[linked] = _of_noisy(variances[linked], freedom[linked])
            moderated[linked] = (worth * common + freedom * variances)[linked] / (worth + freedom)[linked]
        most, lent = np.where(worth > 0, most[component], 0.0), np.where(worth > 0, worth + freedom, 1.0)
        reach, reach_lent = special.stdtrit([np.maximum(1, freedom), lent], 0.5 + CONFIDENCE / 2)
        noisy = np.where(reach**2 * noisy > reach_lent**2 * moderated, noisy, 0.0)
        return moderated, lent, np.array([noisy, freedom]), most


def _of_noisy(variances: Array, freedom: Array) -> Array:
    """The variance of each cell that is noisier than the others by itself, 0 of all that are not, and of unknown ones.

    The groups' means have taken a share of its residuals, and given it one of the others' (Grubbs 1948).
    """
    count = int((freedom > 0).sum())
    rest = (variances.sum() - variances) / max(1, count - 1)
    apart = variances + (variances - variances.sum() / count) / max(1, count - 2)
    return np.where(variances > np.minimum(_NOISY, freedom / 2) * rest, apart, 0.0)


def _fewer_first(table: Array) -> Array:
    """A table of (cells, groups), turned where there are fewer groups."""
    return table if len(table) <= len(table.T) else table.T


def _components(cell: NDArray[np.intp], group: NDArray[np.intp], shape: tuple[int, ...]) -> NDArray[np.intp]:
    """For each cell the first of the cells that groups link it with, directly or through others."""
    found = np.arange(shape[0])
    while True:
        of_group = np.full(shape[1], shape[0])
        np.minimum.at(of_group, group, found[cell])
        further = found.copy()
        np.minimum.at(further, cell, of_group[group])
        if (further == found).all():
            return found
        found = further
