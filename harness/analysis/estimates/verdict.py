"""Deciding A against B: `docs/protocol.md#deciding-a-against-b`.

The estimate is θ = ln(X_b/X_a), the log ratio of throughputs: above zero B is faster. Two margins, δ (the
smallest difference that counts) and ε ≥ δ (the margin of equivalence), and in this order:

- *invalid*: a side failed its correctness gate, or gave nothing to compare;
- *faster*, *slower*: the whole 95 % interval of θ lies beyond +δ, or beyond −δ;
- *equivalent*: the 90 % interval lies inside ±ε (two one-sided tests at 5 %, Schuirmann 1987), less the share of a
  window that is no steps;
- *undecided*: none of these.

The same as p-values, which is what many comparisons at once need: `p_different` is that of the two
one-sided tests of |θ| ≤ δ, doubled, so that p ≤ 0.05 says what the 95 % interval beyond ±δ says; and
`p_equivalent` is the larger p of the two tests of |θ| ≥ ε. Among several cells both are adjusted: by
Benjamini–Hochberg (1995) where a table is read for what stands out, by Holm (1979) where one wrong
alarm among cells named beforehand is one too many.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.analysis.estimates.intervals import CONFIDENCE, Interval, LogEstimate, t_quantile
from harness.analysis.ranking import benjamini_hochberg
from harness.errors import HarnessError, UsageError, not_one_of
from harness.looks import MOST_BLOCKS

Verdict = Literal["faster", "slower", "equivalent", "undecided", "invalid"]
Correction = Literal["none", "fdr", "holm"]
ALPHA = 0.05
TOST_CONFIDENCE = 1 - 2 * ALPHA
DELTA = 0.01
EPSILON = 0.03
_LARGEST_LOG_RATIO = 600.0


@dataclass(frozen=True)
class Margins:
    """δ and ε as shares: 0.01 is 1 %. UsageError unless 0 ≤ δ ≤ ε < 1 and ε > 0."""

    delta: float = DELTA
    epsilon: float = EPSILON
    source: str = "the defaults"
    """Where δ comes from, in words: the defaults, the command line, a validation of this machine."""

    def __post_init__(self) -> None:
        for name, value in (("delta", self.delta), ("epsilon", self.epsilon)):
            if not (math.isfinite(value) and 0 <= value < 1):
                raise UsageError(f"{name}: given {value}, expected a share from 0 to below 1, such as 0.01 for 1 %")
        if self.epsilon < self.delta or self.epsilon == 0:
            raise UsageError(f"epsilon: given {self.epsilon:g}, expected at least delta ({self.delta:g}) and above 0")

    @property
    def log_delta(self) -> float:
        """δ on the log scale, alike in both directions."""
        return math.log1p(self.delta)

    @property
    def log_epsilon(self) -> float:
        """ε on the log scale."""
        return math.log1p(self.epsilon)


@dataclass(frozen=True)
class Judgement:
    """A verdict with all that it rests on. `estimate`, `ratio` and the p-values are None when invalid."""

    verdict: Verdict
    margins: Margins
    estimate: LogEstimate | None = None
    ratio: Interval | None = None
    """X_b/X_a with its 95 % interval; the interval is None with a single pair."""
    ratio_90: Interval | None = None
    """The same with the 90 % interval that equivalence is judged by."""
    p_different: float | None = None
    p_equivalent: float | None = None
    """Adjusted when `correction` says so; None when there is no interval."""
    correction: Correction = "none"
    comparisons: int = 1
    """How many were judged together."""
    reason: str | None = None
    """Why it is invalid, or why it cannot be known."""
    blocks_needed: int | None = None
    """When undecided: pairs in all that would decide it, were the mean and the spread to stay as they are."""

    @property
    def noise(self) -> float | None:
        """Standard deviation of what was averaged: for pairs, of the paired log difference."""
        return None if self.estimate is None else self.estimate.deviation


def invalid(reason: str, margins: Margins) -> Judgement:
    """No comparison: a side failed its gate or has no measurement."""
    return Judgement("invalid", margins, reason=reason)


def pending(reason: str, margins: Margins) -> Judgement:
    """No verdict yet: its plan has not come to a look."""
    return Judgement("undecided", margins, reason=reason)


def judge(estimate: LogEstimate, margins: Margins) -> Judgement:
    """The verdict on one comparison. HarnessError on an estimate that is not finite: never a verdict."""
    return judge_all([estimate], margins)[0]


def judge_all(
    estimates: Sequence[LogEstimate], margins: Margins, correction: Correction = "none"
) -> tuple[Judgement, ...]:
    """The verdicts on comparisons that are read together, in the order given."""
    first = [_unadjusted(estimate, margins) for estimate in estimates]
    known = [index for index, item in enumerate(first) if item.p_different is not None]
    adjust = _ADJUSTMENTS[correction]
    different = adjust([_known(first[index].p_different) for index in known])
    equivalent = adjust([_known(first[index].p_equivalent) for index in known])
    for index, p_different, p_equivalent in zip(known, different, equivalent, strict=True):
        first[index] = replace(first[index], p_different=p_different, p_equivalent=p_equivalent)
    together = len(known)
    return tuple(_decided(replace(item, correction=correction, comparisons=max(1, together))) for item in first)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values in the order given: reject those ≤ α for a family-wise error of α (1979)."""
    count = len(p_values)
    adjusted = [1.0] * count
    largest = 0.0
    for place, index in enumerate(sorted(range(count), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (count - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted


_ADJUSTMENTS: dict[Correction, Callable[[Sequence[float]], list[float]]] = {
    "fdr": benjamini_hochberg,
    "holm": holm,
    "none": list,
}


def correction_of(key: str, name: str) -> Correction:
    """The correction of that name; UsageError, which names `key`, when there is none."""
    for known in _ADJUSTMENTS:
        if known == name:
            return known
    raise not_one_of(key, name, _ADJUSTMENTS)


def blocks_needed(estimate: LogEstimate, margins: Margins) -> int | None:
    """The fewest pairs that would decide, had they this mean and this deviation; None beyond 1,000.

    With the usual t_{n−1}, or at the last look of a plan with looks. Without pairs (Welch) it is the trials of
    either side, were both to grow in proportion. Of this comparison alone: a correction for many wants more.
    A planning figure, not a promise.
    """
    if estimate.standard_error is None:
        return None
    # Welch has no one deviation: SE·√n then stands for it, n the trials of the smaller side
    deviation = estimate.standard_error * math.sqrt(estimate.count)
    distance = abs(estimate.mean)
    wide, narrow = (estimate.confidence_of_plans(confidence) for confidence in (CONFIDENCE, TOST_CONFIDENCE))

    def decides(count: int) -> bool:
        error = deviation / math.sqrt(count)
        return (
            distance - t_quantile(count - 1, wide) * error > margins.log_delta
            or distance + t_quantile(count - 1, narrow) * error < estimate.steps * margins.log_epsilon
        )

    return fewest_after(estimate.count, decides)


def fewest_after(count: int, decides: Callable[[int], bool]) -> int | None:
    """The fewest blocks, two at least and more than `count`, with which `decides` is true; None beyond 1,000.

    By halves: t/√n falls with n, so that what decides goes on deciding.
    """
    counts = range(max(2, count + 1), MOST_BLOCKS + 1)
    place = bisect_left(counts, True, key=decides)
    return counts[place] if place < len(counts) else None


def _unadjusted(estimate: LogEstimate, margins: Margins) -> Judgement:
    if not _can_be_judged(estimate):
        raise HarnessError(f"a log ratio of {estimate.mean} ± {estimate.standard_error} cannot be judged")
    distance = abs(estimate.mean)
    return Judgement(
        "undecided",
        margins,
        estimate,
        estimate.interval(),
        estimate.interval(TOST_CONFIDENCE),
        _doubled(estimate.tail(distance - margins.log_delta)),
        estimate.tail(estimate.steps * margins.log_epsilon - distance),
    )


def _can_be_judged(estimate: LogEstimate) -> bool:
    """Finite figures that a t test takes. Beyond e^±600 the ratio itself is no float any more."""
    error, freedom = estimate.standard_error, estimate.degrees_of_freedom
    if not (math.isfinite(estimate.mean) and abs(estimate.mean) <= _LARGEST_LOG_RATIO):
        return False
    return (error is None or (math.isfinite(error) and error >= 0)) and (
        freedom is None or (math.isfinite(freedom) and freedom > 0)
    )


def _doubled(tail: float | None) -> float | None:
    return None if tail is None else min(1.0, 2 * tail)


def _decided(item: Judgement) -> Judgement:
    assert item.estimate is not None
    if item.p_different is None or item.p_equivalent is None:
        pairs = "pair" if item.estimate.count == 1 else "pairs"
        reason = f"{item.estimate.count} {pairs} of trials: one observation a side has no spread, so it cannot be known"
        return replace(item, reason=reason)
    if item.p_different <= ALPHA:
        return replace(item, verdict="faster" if item.estimate.mean > 0 else "slower")
    if item.p_equivalent <= ALPHA:
        return replace(item, verdict="equivalent")
    return replace(item, blocks_needed=blocks_needed(item.estimate, item.margins))


def _known(value: float | None) -> float:
    assert value is not None
    return value
