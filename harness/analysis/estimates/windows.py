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
    effective_sample_size: float | None
    """n·(1 − ρ)/(1 + ρ), within [1, n]: how many independent windows these are worth (AR(1))."""
    step_time_p50_s: float
    step_time_p95_s: float
    step_time_p99_s: float
    outliers: tuple[int, ...]
    """Indices of windows beyond Tukey's fences: counted, never removed."""


def diagnose(seconds: Sequence[float], steps_per_window: int) -> Diagnostics:
    """Diagnostics of a trial's measured windows; percentiles are of window time ÷ steps, in seconds.

    Plain Python: a window series has tens of values, a run has thousands of series.
    """
    if not seconds:
        raise HarnessError("no windows were measured: there is nothing to diagnose")
    if not (min(seconds) > 0 and math.isfinite(sum(seconds))):  # a sum with one that is not finite is not either
        raise HarnessError("the trial: a window time is not a finite, positive number of seconds")
    times = sorted(seconds)
    p50, p95, p99 = (quantile(times, share) / steps_per_window for share in (0.50, 0.95, 0.99))
    correlation = lag1_autocorrelation(seconds)
    effective = None if correlation is None else effective_sample_size(len(seconds), correlation)
    return Diagnostics(len(seconds), correlation, effective, p50, p95, p99, _outliers(seconds, times, FENCE))


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


def effective_sample_size(count: int, correlation: float) -> float:
    """n·(1 − ρ)/(1 + ρ), kept within [1, n]: negative correlation is not counted as extra evidence."""
    if correlation <= 0:
        return float(count)
    return max(1.0, count * (1 - correlation) / (1 + correlation))


def outliers(values: Sequence[float], factor: float = FENCE) -> tuple[int, ...]:
    """Indices beyond Tukey's fences, Q1 − factor·IQR and Q3 + factor·IQR; empty below four values."""
    return _outliers(values, sorted(values), factor)


def _outliers(values: Sequence[float], ordered: Sequence[float], factor: float) -> tuple[int, ...]:
    if len(values) < 4:
        return ()
    lower, upper = quantile(ordered, 0.25), quantile(ordered, 0.75)
    reach = factor * (upper - lower)
    if lower - reach <= ordered[0] and ordered[-1] <= upper + reach:
        return ()
    return tuple(index for index, value in enumerate(values) if not lower - reach <= value <= upper + reach)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of values in ascending order, interpolated linearly (NumPy's default, Hyndman & Fan's type 7)."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
