"""Where the steady state begins, and what the windows after it look like.

`docs/protocol.md#timing`: steady state begins at the first window from which two adjacent groups of
windows agree in median within 2 % and show no significant slope. The parent asks this *online*,
after each round of turns, so a call must be cheap: it is vectorised over all possible first windows.

**How often it says "steady".** Simulated series (400 each, groups of 5, at most 20 windows of warm-up
looked at; `tests/analysis/estimates/test_steady.py` repeats the main ones). "bias" is how much warm-up is left,
on average, in the ten windows that would be measured.

=============================================  =======================  ======================================
one trial alone (`steady_from`)                declared in 20 windows   note
=============================================  =======================  ======================================
flat, σ = 1, 2, 3, 4 %                         100, 100, 99.6, 99 %     in the first 10: 94, 82, 63, 47 %
flat σ = 2 % + drift 10 % over 20 windows      86–89 %                  in the first 10: 26 %
decay 10 %·exp(−r/4), σ = 1 %                  98 %                     starts at window 6, bias 1.1 %
decay 30 %·exp(−r/3), σ = 2 %, same drift      78 %                     starts at window 5, bias 2.8 %
=============================================  =======================  ======================================

So a median of five windows at σ = 3 % agrees within 2 % only six times in ten, but the rule may start
at any window, and within 20 windows nearly every flat series is found: larger groups would cost more
windows than they save, so there are none. What does break the rule is drift, and drift is common to
all that take turns. Each trial's windows are therefore divided by the geometric mean of the *other*
trials' windows of the same round (`block_steady_from`), after which 2 % still means 2 % of the trial:

=============================================  =======================  ======================================
trials taking turns (all must be steady)       raw, 2 / 4 / 8 / 12      divided, 2 / 4 / 8 / 12 trials
=============================================  =======================  ======================================
flat σ = 2 % + drift 10 %: declared            82 / 70 / 54 / 51 %      100 / 99.5 / 99.8 / 99.8 %
one decays 30 %·exp(−r/3) + drift: declared    72 / 61 / 46 / 43 %      94 / 94 / 97 / 97 %
… its bias                                     1.8 / 1.5 / 1.4 / 1.2 %  1.6 / 1.3 / 1.3 / 1.3 %
flat σ = 3 %, no drift: declared               99.5 / 98 / 98 / 97 %    99 / 98 / 97 / 97 %
=============================================  =======================  ======================================

**What dividing cannot see** is a warm-up that every trial shares in the same rounds (30 % in all of them:
declared at once, bias 6–9 %). It cancels in every ratio but not in an absolute throughput, so one guard
is added: a round that is slower than each of the five after it is still warm-up of the block. That costs
about one round when nothing decays and brings the shared 30 % down to 1.1–2.1 % (2.7–3.5 % under 10 % drift).
A decay smaller than the drift remains invisible, as it must.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import special

from harness.errors import HarnessError

GROUP = 5
"""Windows in each of the two adjacent groups."""
AGREEMENT = 0.02
"""Largest relative difference between the two groups' medians."""
SIGNIFICANCE = 0.05
"""Level of the two-sided t test of the slope over both groups."""
NEGLIGIBLE = 1e-9
"""A relative change over both groups below this is rounding, whatever the t test makes of it."""
FENCE = 1.5
"""Tukey's factor: an outlier lies more than this many interquartile ranges beyond a quartile."""

Array = NDArray[np.float64]


def steady_from(seconds: Sequence[float], group: int = GROUP) -> int | None:
    """Index of the first window of the steady state of one trial, or None when it is not reached (yet).

    `seconds` are window times in order, all of the same number of steps; 2·`group` windows are needed
    for an answer. Raises HarnessError on a time that is not finite and positive.
    """
    return _first(_log_series(seconds, "the trial"), group)


def trials_steady_from(windows_by_trial: Mapping[str, Sequence[float]], group: int = GROUP) -> dict[str, int | None]:
    """For each of the trials that took turns, the round from which *it* is steady, None where not (yet).

    `windows_by_trial[t][i]` is the time in seconds of trial t's window in round i: the same i is the
    same round for all. Rounds that not every trial has finished are not looked at.
    """
    series = {name: _log_series(seconds, name) for name, seconds in windows_by_trial.items()}
    if not series:
        return {}
    if len(series) == 1:
        return {name: _first(values, group) for name, values in series.items()}
    finished = min(len(values) for values in series.values())
    logs = np.stack([values[:finished] for values in series.values()])
    warm = _first_round_not_slowest(logs.mean(axis=0), group)
    count = len(series)
    # log w − mean over the others = (log w − mean over all)·K/(K−1)
    relative = (logs - logs.mean(axis=0)) * (count / (count - 1))
    starts = (_first(row, group) for row in relative)
    return {name: None if start is None else max(start, warm) for name, start in zip(series, starts, strict=True)}


def block_steady_from(windows_by_trial: Mapping[str, Sequence[float]], group: int = GROUP) -> int | None:
    """The first round from which *every* trial that takes turns is steady, or None while one is not.

    All trials of a group are measured over the same rounds, since only then does what the machine did
    in a round cancel in their ratio. See `trials_steady_from` for the arguments and for which trials
    are to be flagged `unsteady` when the cap on warm-up comes first.
    """
    starts = list(trials_steady_from(windows_by_trial, group).values())
    known = [start for start in starts if start is not None]
    return max(known) if known and len(known) == len(starts) else None


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
    """Indices of windows beyond Tukey's fences: flagged, never removed."""


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


def _log_series(seconds: Sequence[float], name: str) -> Array:
    times = np.asarray(seconds, dtype=np.float64)
    if not (np.isfinite(times) & (times > 0)).all():
        raise HarnessError(f"{name}: a window time is not a finite, positive number of seconds")
    logs: Array = np.log(times)
    return logs


def _first(values: Array, group: int) -> int | None:
    starts = _steady_starts(values, group)
    return int(starts.argmax()) if starts.any() else None


def _steady_starts(values: Array, group: int) -> NDArray[np.bool_]:
    """For each possible first window, whether the rule holds over it and the 2·group − 1 after it."""
    if group < 2:
        raise HarnessError(f"group: {group} given, expected at least 2 windows")
    span = 2 * group
    if len(values) < span:
        return np.zeros(0, dtype=np.bool_)
    views = sliding_window_view(values, span)
    medians = np.median(views.reshape(len(views), 2, group), axis=2)
    agree = np.abs(medians[:, 1] - medians[:, 0]) <= math.log1p(AGREEMENT)
    position = np.arange(span) - (span - 1) / 2
    spread = float(position @ position)
    slopes = views @ position / spread
    centred = views - views.mean(axis=1, keepdims=True)
    residual = np.maximum((centred**2).sum(axis=1) - slopes**2 * spread, 0.0)
    error = np.sqrt(residual / (span - 2) / spread)
    limit = float(special.stdtrit(span - 2, 1 - SIGNIFICANCE / 2))
    level = (np.abs(slopes) <= limit * error) | (np.abs(slopes) * span <= NEGLIGIBLE)
    result: NDArray[np.bool_] = agree & level
    return result


def _first_round_not_slowest(common: Array, group: int) -> int:
    """The first round that is not slower than each of the `group` after it; the last such start if none."""
    last = len(common) - group
    for index in range(last):
        if common[index] <= common[index + 1 : index + 1 + group].max() + NEGLIGIBLE:
            return index
    return max(last, 0)
