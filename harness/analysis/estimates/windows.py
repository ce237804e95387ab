"""What the measured windows of a trial look like."""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import HarnessError

NEGLIGIBLE = 1e-9
"""Relative spread below this is rounding."""
FENCE = 1.5
"""Tukey's factor: an outlier lies more than this many interquartile ranges beyond a quartile."""


@dataclass(frozen=True)
class Diagnostics:
    """What the measured windows of one trial look like. Nothing here changes an estimate."""

    windows: int
    lag1_autocorrelation: float | None
    step_time_p50_s: float
    step_time_p95_s: float
    step_time_p99_s: float
    outliers: tuple[int, ...]
    """Indices of windows beyond Tukey's fences: counted, never removed."""


def diagnose(seconds: Sequence[float], steps_per_window: int) -> Diagnostics:
    """Diagnostics of a trial's measured windows; percentiles are of window time ÷ steps, in seconds.

    Plain Python: a window series has tens of values, a run has thousands of series. HarnessError without any window,
    and for a time that is not finite and above 0.
    """
    if not seconds:
        raise HarnessError("no windows were measured: there is nothing to diagnose")
    if not (min(seconds) > 0 and math.isfinite(sum(seconds))):  # a sum with one that is not finite is not either
        raise HarnessError("the trial: a window time is not a finite, positive number of seconds")
    times = sorted(seconds)
    p50, p95, p99 = (quantile(times, share) / steps_per_window for share in (0.50, 0.95, 0.99))
    correlation = lag1_autocorrelation(seconds)
    return Diagnostics(len(seconds), correlation, p50, p95, p99, _outliers(seconds, times))


def lag1_autocorrelation(values: Sequence[float]) -> float | None:
    """r₁ = Σ(x_i − x̄)(x_{i+1} − x̄) / Σ(x_i − x̄)²; None below three values or without any spread."""
    if len(values) < 3:
        return None
    mean = math.fsum(values) / len(values)
    centred = [value - mean for value in values]
    total = math.fsum(value * value for value in centred)
    if total <= (NEGLIGIBLE * max(map(abs, values))) ** 2:
        return None
    return math.fsum(map(operator.mul, centred, centred[1:])) / total


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Indices beyond Tukey's fences, Q1 − 1.5·IQR and Q3 + 1.5·IQR; empty below four values."""
    return _outliers(values, sorted(values))


def _outliers(values: Sequence[float], ordered: Sequence[float]) -> tuple[int, ...]:
    if len(values) < 4:
        return ()
    lower, upper = quantile(ordered, 0.25), quantile(ordered, 0.75)
    reach = FENCE * (upper - lower)
    if lower - reach <= ordered[0] and ordered[-1] <= upper + reach:
        return ()
    return tuple(index for index, value in enumerate(values) if not lower - reach <= value <= upper + reach)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of values in ascending order, interpolated linearly (NumPy's default, Hyndman & Fan's type 7)."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
