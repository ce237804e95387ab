"""Decisions that are looked at while they are measured, at blocks that were fixed beforehand.

Boundaries, intervals and p-values are those of `docs/protocol.md#how-many-blocks`. The integral is over the t
statistics themselves: the one for a known variance lets 2.7 % pass for 2.5 % where each look estimates its own from few
pairs.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.analysis.estimates.intervals import CONFIDENCE, LogEstimate, log_mean
from harness.analysis.estimates.verdict import TOST_CONFIDENCE, Margins
from harness.errors import HarnessError

Array = NDArray[np.float64]
SHAPE = 1.5
_LOWEST, _HIGHEST, _WIDTH = -3.2, 6.4, 0.06
"""Standard scores between which, and in cells of what width, the state between looks is followed."""


@dataclass(frozen=True)
class Looks:
    """A schedule with the nominal one-sided p at which each look stops. HarnessError on one that makes no sense."""

    after: tuple[int, ...]
    """Blocks measured at each look, the last of them the most."""
    different: tuple[float, ...]
    """Of |θ| ≤ δ."""
    equivalent: tuple[float, ...]
    """Of |θ| ≥ ε."""
    steps: float = 1.0
    """Share of a window that is steps: a difference between steps shows by so much, and ε is smaller by it."""

    def __post_init__(self) -> None:
        """Rising numbers of blocks from two on, and a boundary in (0, 1/2) for each."""
        rising = all(earlier < later for earlier, later in zip((1, *self.after), self.after, strict=False))
        bounded = all(
            len(limits) == len(self.after) and all(0 < limit < 0.5 for limit in limits)
            for limits in (self.different, self.equivalent)
        )
        if not (self.after and rising and bounded and 0 < self.steps <= 1):
            raise HarnessError(f"looks after {self.after} blocks with boundaries {self.different}, {self.equivalent}")

    @classmethod
    def planned(cls, after: Sequence[int], among: int = 1) -> "Looks":
        """Looks after so many blocks each. Of one decision `among` several a look stops only where Holm's correction
        for all of them could not undo it (Maurer & Bretz 2013)."""
        shape = tuple((blocks / after[-1]) ** SHAPE for blocks in after)
        different, equivalent = (
            tuple(_scale(tuple(after), shape, (1 - confidence) / 2 / among) * part for part in shape)
            for confidence in (CONFIDENCE, TOST_CONFIDENCE)
        )
        return cls(tuple(after), different, equivalent)

    def estimate(self, values: Sequence[float], number: int) -> LogEstimate:
        """The mean of the values that look `number` (from 1) has, with that look's intervals and p-values."""
        plain = log_mean(values, "repeated t")
        if plain.standard_error is None:
            return plain
        parts = {field.name: getattr(plain, field.name) for field in fields(plain)}
        return LookEstimate(**parts, looks=self, number=number)

    def stops(self, values: Sequence[float], number: int, margins: Margins) -> bool:
        """Whether the p of either test of the values that look `number` has is at most its boundary."""
        plain = log_mean(values, "repeated t") if values else None
        if plain is None or plain.standard_error is None:
            return False
        distance = abs(plain.mean)
        tests = (
            (distance - margins.log_delta, self.different),
            (self.steps * margins.log_epsilon - distance, self.equivalent),
        )
        found = ((plain.tail(beyond), limits[number - 1]) for beyond, limits in tests)
        return any(p is not None and p <= limit for p, limit in found)

    def nominal(self, alpha: float, number: int) -> float:
        """The one-sided p at look `number` of a plan that errs with `alpha` in all."""
        shape = self._shape
        return _scale(self.after, shape, alpha) * shape[number - 1]

    def overall(self, nominal: float, number: int) -> float:
        """The chance that a mean at the margin crosses some look's boundary, were they such that `nominal` is on
        that of look `number`: the smallest error of a whole plan that still says what this look says."""
        if len(self.after) == 1 or nominal in (0.0, 1.0):
            return nominal
        shape = self._shape
        scale = nominal / shape[number - 1]
        return 1.0 if scale >= 1 else min(1.0, max(scale, _crossing(self.after, [scale * part for part in shape])))

    @property
    def _shape(self) -> tuple[float, ...]:
        return tuple(limit / self.different[-1] for limit in self.different)


@dataclass(frozen=True)
class LookEstimate(LogEstimate):
    """A mean at a look: its intervals are that look's repeated confidence intervals, its p those of the whole plan."""

    looks: Looks
    number: int

    @property
    def steps(self) -> float:
        """That of its looks."""
        return self.looks.steps

    def log_bounds(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """mean ± t·SE at the look's nominal confidence."""
        return super().log_bounds(1 - 2 * self.looks.nominal((1 - confidence) / 2, self.number))

    def tail(self, distance: float) -> float | None:
        """The one-sided p over all looks, of a mean that lies `distance` beyond the margin."""
        nominal = super().tail(distance)
        return None if nominal is None else self.looks.overall(nominal, self.number)

    def confidence_of_plans(self, confidence: float) -> float:
        """That of the last look: more blocks are those of a longer plan."""
        return 1 - 2 * self.looks.nominal((1 - confidence) / 2, len(self.looks.after))


@functools.lru_cache(maxsize=64)
def _scale(after: tuple[int, ...], shape: tuple[float, ...], alpha: float) -> float:
    """c with a crossing probability of `alpha`: between alpha ÷ looks (Bonferroni) and alpha."""
    if len(after) == 1:
        return alpha

    from scipy import optimize  # half of what `show` would import, and only a plan of several looks needs it

    def excess(scale: float) -> float:
        return _crossing(after, [scale * part for part in shape]) - alpha

    return float(optimize.brentq(excess, alpha / len(after), alpha, xtol=1e-9))


def _crossing(after: tuple[int, ...], limits: Sequence[float]) -> float:
    """The chance that the p of some look is at most its limit, of pairs whose mean is at the margin."""
    edges, _ = _cells()
    above = special.ndtr(-edges)
    mass = above[:-1] - above[1:]
    total = 0.0
    for look, limit in enumerate(limits):
        if look:
            mass = _between(after[look - 1], after[look]) @ mass
        crossed = mass * np.clip((np.minimum(above[:-1], limit) - above[1:]) / (above[:-1] - above[1:]), 0, 1)
        total += float(crossed.sum())
        mass = mass - crossed
    return total


@functools.cache
def _cells() -> tuple[Array, Array]:
    """Edges of the cells of the standard score that a p stands for, and the score that halves each cell's chance."""
    edges = np.concatenate([[-np.inf], np.arange(_LOWEST, _HIGHEST, _WIDTH), [np.inf]])
    above = special.ndtr(-edges)
    return edges, -special.ndtri((above[:-1] + above[1:]) / 2)


@functools.lru_cache(maxsize=64)
def _between(first: int, last: int) -> Array:
    """P(cell after `last` values | cell after `first`), one column a cell."""
    chances = np.eye(len(_cells()[1]))
    for count in range(first, last):
        chances = _one_more(count) @ chances
    return chances


@functools.lru_cache(maxsize=64)
def _one_more(count: int) -> Array:
    """The same for one value more.

    The new value is sin φ of the length of all, with a density ∝ cosⁿ⁻¹ φ, so that √n·tan φ has Student's t of n
    degrees of freedom; the cosine becomes R·sin(φ + ψ)/√(n+1) with R² = n·u² + 1 and tan ψ = √n·u.
    """
    edges, middles = _cells()
    cosine, limits = _cosines(middles, count)[None, :], _cosines(edges, count + 1)[:, None]
    turned = np.arctan(math.sqrt(count) * cosine)
    angle = np.arcsin(np.clip(limits * math.sqrt(count + 1) / np.sqrt(count * cosine**2 + 1), -1, 1))

    def below(phi: Array) -> Array:
        bounded = np.clip(phi, -math.pi / 2, math.pi / 2)
        return np.asarray(special.stdtr(count, math.sqrt(count) * np.tan(bounded)))

    chances = below(angle - turned) - below(-math.pi - angle - turned) + 1 - below(math.pi - angle - turned)
    chances[0], chances[-1] = 0, 1
    return np.asarray(np.diff(chances, axis=0))


def _cosines(scores: Array, count: int) -> Array:
    """u = t/√(n − 1 + t²) of the t whose p of n values has these standard scores."""
    t = np.sign(scores) * np.abs(special.stdtrit(count - 1, special.ndtr(-np.abs(scores))))
    with np.errstate(invalid="ignore"):
        cosine = t / np.sqrt(count - 1 + t * t)
    return np.asarray(np.where(np.isinf(t), np.sign(t), cosine))
