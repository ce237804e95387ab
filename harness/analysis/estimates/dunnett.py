"""Dunnett's distribution: the largest of several t statistics that share their denominator and one side.

Sources: C. W. Dunnett (1955) for several treatments with one control; J. C. Hsu (1996), chapters 3 and 4, for the
comparison with the best that rests on it.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.analysis.estimates.intervals import LogEstimate

Array = NDArray[np.float64]
_NORMAL, _NORMAL_WEIGHT = np.polynomial.hermite_e.hermegauss(31)
_NORMAL_WEIGHT = _NORMAL_WEIGHT / _NORMAL_WEIGHT.sum()
_SHARE, _SHARE_WEIGHT = np.polynomial.legendre.leggauss(24)
_SHARE, _SHARE_WEIGHT = (_SHARE + 1) / 2, _SHARE_WEIGHT / 2
_LIKE_NORMAL = 1e6
_CLOSE = 1e-4
_MOST_STEPS = 50


def _scales(degrees_of_freedom: float) -> Array:
    """S at the shares of its distribution that the rule asks for."""
    freedom = min(degrees_of_freedom, _LIKE_NORMAL)
    found: Array = np.sqrt(2 * special.gammaincinv(freedom / 2, _SHARE) / freedom)
    return found


def _below(limit: float, count: int, correlation: float, scales: Array) -> float:
    """P(max of T₁ … T_count ≤ `limit`), each pair of them correlated by `correlation` (0 to below 1).

    T_j = (√(1−ρ)·Y_j + √ρ·Z)/S with standard normal Y_j and Z and S² = χ²_ν/ν, so given Z and S the T_j are
    independent: ∫∫ Φ((limit·s − √ρ·z)/√(1−ρ))^count, by Gauss's rules; good to 1e-3, and to 1e-4 at ν of 6 to 100.
    """
    within = limit * scales - math.sqrt(correlation) * _NORMAL[:, None]
    below = special.ndtr(within / math.sqrt(1 - correlation)) ** count
    return float(_NORMAL_WEIGHT @ below @ _SHARE_WEIGHT)


def critical_value(estimate: LogEstimate, count: int, correlation: float | None, confidence: float) -> float | None:
    """The one-sided limit that the largest of `count` statistics like that of `estimate` keeps below.

    With `correlation` None Bonferroni's bound, which holds whatever the comparisons have in common. None without a
    standard error.
    """
    freedom = estimate.degrees_of_freedom
    if freedom is None:
        return None
    highest = float(special.stdtrit(freedom, 1 - (1 - confidence) / count))
    if correlation is None or count == 1:
        return highest
    lowest, scales = float(special.stdtrit(freedom, confidence)), _scales(freedom)

    def beyond(limit: float) -> float:
        """In normal quantiles, in which it is nearly a line."""
        return float(special.ndtri(_below(limit, count, correlation, scales)) - special.ndtri(confidence))

    return _root(beyond, lowest, highest)


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where `rising` is zero, by false position (the Illinois rule); an end where it is not between the two."""
    at_low, at_high = rising(low), rising(high)
    if at_low >= 0 or at_high <= 0:
        return low if at_low >= 0 else high
    side = 0
    for _ in range(_MOST_STEPS):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        found = rising(middle)
        if abs(found) < _CLOSE:
            break
        if found > 0:
            high, at_high, at_low, side = middle, found, at_low / (2 if side > 0 else 1), 1
        else:
            low, at_low, at_high, side = middle, found, at_high / (2 if side < 0 else 1), -1
    return middle
