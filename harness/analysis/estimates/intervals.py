"""Point estimates and intervals on the logarithm, as `docs/protocol.md#estimators` defines them.

Everything here works on x_p = ln(G / τ_p), the log throughput of trial p, with one value a trial:
the trial, never the step or the window, is the unit of replication. Multiplying every throughput by
a constant shifts x and leaves every interval's relative width alone, so a cell's interval is
G·exp(−ȳ ± t·s/√P) exactly as printed in the protocol.

An interval that one trial cannot give is None ("cannot know"), never a made-up one, and a value that
is not finite is an error, never a verdict.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy import special

from harness.errors import HarnessError

IntervalMethod = Literal[
    "t", "paired t", "paired t through the base", "Welch t", "Stein t", "repeated t", "moderated t", "Dunnett", "none"
]
CONFIDENCE = 0.95
_LARGEST_LOG = 300.0


@dataclass(frozen=True)
class Interval:
    """A positive quantity with its interval; `low` and `high` are None together when it cannot be known."""

    value: float
    low: float | None
    high: float | None
    confidence: float = CONFIDENCE
    method: IntervalMethod = "none"
    count: int = 1
    """Trials, or pairs of trials, behind the value (the smaller side for Welch)."""

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return self.low is not None

    @property
    def relative_half_width(self) -> float | None:
        """Half the interval's width on the log scale: 0.02 reads as about ±2 %."""
        if self.low is None or self.high is None:
            return None
        return math.log(self.high / self.low) / 2

    def at(self, value: float) -> "Interval":
        """The same interval around another estimate, which is kept within it."""
        if self.low is None or self.high is None:
            return replace(self, value=value)
        return replace(self, value=min(max(value, self.low), self.high))

    def scaled(self, factor: float) -> "Interval":
        """The same quantity in another unit, or divided by a known constant (`factor` > 0)."""
        low = None if self.low is None else self.low * factor
        high = None if self.high is None else self.high * factor
        return Interval(self.value * factor, low, high, self.confidence, self.method, self.count)

    def inverted(self) -> "Interval":
        """1/value with its interval: a step time from steps per second, "times slower" from "times as fast"."""
        low = None if self.high is None else 1 / self.high
        high = None if self.low is None else 1 / self.low
        return Interval(1 / self.value, low, high, self.confidence, self.method, self.count)


@dataclass(frozen=True)
class LogEstimate:
    """A mean on the log scale with its standard error; both error fields are None when unknowable."""

    mean: float
    standard_error: float | None
    degrees_of_freedom: float | None
    deviation: float | None
    """Standard deviation of what was averaged: log throughputs, or paired log differences."""
    count: int
    method: IntervalMethod

    @property
    def steps(self) -> float:
        """Share of a window that is steps: what shows of a difference between steps. 1 where it is not reckoned."""
        return 1.0

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """exp(mean ± t·SE), the interval of the ratio or of the throughput itself.

        Bounds that a float cannot hold (two trials, corrected for many comparisons) say nothing: None.
        """
        return self._between(self.log_bounds(confidence), confidence, self.method)

    def reaching(
        self, below: float | None, above: float | None, confidence: float, method: IntervalMethod | None = None
    ) -> Interval:
        """exp(mean − below·SE) to exp(mean + above·SE), in words by `method`; None stands for what cannot be known."""
        if self.standard_error is None or below is None or above is None:
            return self._between(None, confidence, "none")
        bounds = self.mean - below * self.standard_error, self.mean + above * self.standard_error
        return self._between(bounds, confidence, method or self.method)

    def _between(self, bounds: tuple[float, float] | None, confidence: float, method: IntervalMethod) -> Interval:
        if bounds is None or max(map(abs, bounds)) > _LARGEST_LOG:
            return Interval(math.exp(self.mean), None, None, confidence, "none", self.count)
        low, high = map(math.exp, bounds)
        return Interval(math.exp(self.mean), low, high, confidence, method, self.count)

    def log_bounds(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """mean ± t·SE, or None when there is no standard error."""
        if self.standard_error is None or self.degrees_of_freedom is None:
            return None
        half = t_quantile(self.degrees_of_freedom, confidence) * self.standard_error
        return self.mean - half, self.mean + half

    def tail(self, distance: float) -> float | None:
        """P(T ≤ −distance/SE), the one-sided p of a mean `distance` beyond a margin; None without a standard error.

        Without any spread 0 or 1, the limits.
        """
        if self.standard_error is None or self.degrees_of_freedom is None:
            return None
        if self.standard_error == 0:
            return 0.0 if distance > 0 else 1.0
        return float(special.stdtr(self.degrees_of_freedom, -distance / self.standard_error))

    def confidence_of_plans(self, confidence: float) -> float:
        """The confidence of the interval that a plan of more trials ends with."""
        return confidence

    def p_value(self) -> float | None:
        """Two-sided p of "the mean is 0"; None when there is no standard error.

        With no spread at all (identical trials) the answer is 1 or 0, the limit of the t test.
        """
        if self.standard_error is None or self.degrees_of_freedom is None:
            return None
        distance = abs(self.mean)
        if self.standard_error == 0:
            return 1.0 if distance == 0 else 0.0
        return float(2 * special.stdtr(self.degrees_of_freedom, -distance / self.standard_error))


@dataclass(frozen=True)
class Sample:
    """The trials of one cell: x_p = ln throughput, the group each ran in, and its block."""

    values: tuple[float, ...]
    groups: tuple[str, ...]
    blocks: tuple[int, ...] = ()
    """Needed only for a comparison through the base; empty when unknown."""

    def __post_init__(self) -> None:
        """Raise HarnessError on a value that is not finite or on lengths that differ."""
        if len(self.values) != len(self.groups):
            raise HarnessError(f"a sample has {len(self.values)} values but {len(self.groups)} groups")
        if self.blocks and len(self.blocks) != len(self.values):
            raise HarnessError(f"a sample has {len(self.values)} values but {len(self.blocks)} blocks")
        if not self.values:
            raise HarnessError("a sample has no trials")
        for value in self.values:
            if not (math.isfinite(value) and abs(value) <= _LARGEST_LOG):
                raise HarnessError(f"a trial's log throughput is {value}: it cannot be averaged or compared")

    @classmethod
    def of_step_times(
        cls,
        step_times_s: Sequence[float],
        global_batch_size: int,
        groups: Sequence[str] | None = None,
        blocks: Sequence[int] = (),
    ) -> "Sample":
        """From the mean step time τ_p of each trial, in seconds; HarnessError unless finite and positive."""
        for step_time in step_times_s:
            if not (math.isfinite(step_time) and step_time > 0):
                raise HarnessError(f"a trial's step time is {step_time} s: expected a finite, positive number")
        names = tuple(groups) if groups is not None else tuple(f"trial {index}" for index in range(len(step_times_s)))
        values = tuple(math.log(global_batch_size / step_time) for step_time in step_times_s)
        return cls(values, names, tuple(blocks))

    @property
    def mean(self) -> float:
        """x̄ = ln G − ȳ."""
        return math.fsum(self.values) / len(self.values)

    def before(self, block: int) -> "Sample | None":
        """The trials of earlier blocks; None where there is none. It needs blocks."""
        rows = [row for row in zip(self.values, self.groups, self.blocks, strict=True) if row[2] < block]
        return Sample(*map(tuple, zip(*rows, strict=True))) if rows else None

    def shares(self, other: "Sample") -> int:
        """Number of groups in which both have a trial."""
        return len(self.by_group.keys() & other.by_group.keys())

    @functools.cached_property
    def by_group(self) -> dict[str, float]:
        """The mean of each group's trials, in the order of the groups."""
        values: defaultdict[str, list[float]] = defaultdict(list)
        for group, value in zip(self.groups, self.values, strict=True):
            values[group].append(value)
        return {group: math.fsum(members) / len(members) for group, members in values.items()}

    def relative_to(self, reference: "Sample") -> "Sample":
        """ln(X/X_reference) within each shared group, now grouped by block; both samples need blocks."""
        of_reference = reference.by_group
        rows = zip(self.values, self.groups, self.blocks, strict=True)
        kept = [(value - of_reference[group], block) for value, group, block in rows if group in of_reference]
        blocks = tuple(block for _, block in kept)
        return Sample(tuple(value for value, _ in kept), tuple(f"block {block}" for block in blocks), blocks)


def t_quantile(degrees_of_freedom: float, confidence: float = CONFIDENCE) -> float:
    """The two-sided Student t quantile: t with P(|T| ≤ t) = `confidence`."""
    return float(special.stdtrit(degrees_of_freedom, 0.5 + confidence / 2))


def cell_estimate(sample: Sample) -> LogEstimate:
    """x̄ ± t_{P−1}·s/√P of one cell; with one trial there is a mean and nothing else."""
    return log_mean(sample.values, "t")


def own_estimate(sample: Sample, pilot_blocks: int | None) -> LogEstimate:
    """ln X of a cell by itself; after a second stage with the s0 and the t of the first (Stein)."""
    pilot = sum(block < pilot_blocks for block in sample.blocks) if pilot_blocks is not None else 0
    return stein_estimate(sample.values, pilot) if 2 <= pilot < len(sample.values) else cell_estimate(sample)


def throughput_interval(sample: Sample, confidence: float = CONFIDENCE) -> Interval:
    """X = A·exp(−ȳ) in the unit of the work, A what a step does of it, with A·exp(−ȳ ± t_{P−1}·s/√P)."""
    return cell_estimate(sample).interval(confidence)


def log_ratio(numerator: Sample, denominator: Sample) -> LogEstimate:
    """ln(X_a/X_b): paired t over the groups both sides share, Welch when fewer than two are shared.

    Trials of one group were alive together and took turns, so what the machine did to one it did to
    the other, and the difference within the group is free of it. Several trials of a cell in one group
    count as one value, their mean. Trials without a partner are left out of a paired difference, so it
    need not equal the difference of the two cells' own means.
    """
    left, right = numerator.by_group, denominator.by_group
    shared = [group for group in left if group in right]
    if len(shared) >= 2:
        return log_mean([left[group] - right[group] for group in shared], "paired t")
    if len(numerator.values) >= 2 and len(denominator.values) >= 2:
        return welch(cell_estimate(numerator), cell_estimate(denominator))
    if shared:
        return log_mean([left[shared[0]] - right[shared[0]]], "none")
    return log_mean([numerator.mean - denominator.mean], "none")


def compare(numerator: Sample, denominator: Sample, references: Iterable[Sample] = ()) -> LogEstimate:
    """ln(X_a/X_b) in the most exact way that the plan allows: `log_ratio`, or paired through a base case.

    When memory splits a block into groups, two cells may never have been alive together, or seldom, and
    Welch's interval would carry the machine's drift between the groups. But a base case ran in every group:
    (x_a − x_base) in one group less (x_b − x_base) in the other is free of it, and is paired by block.
    The first of `references` serves that makes the interval shorter, were each of its pairs to scatter by
    twice the variance. The choice depends on the plan alone, never on the values.
    """
    direct = _half_width(numerator.shares(denominator))
    most = min(len(numerator.by_group), len(denominator.by_group))
    if numerator.blocks and denominator.blocks and _half_width(most, variance=2) < direct:
        for reference in references:
            groups = min(numerator.shares(reference), denominator.shares(reference))
            if _half_width(groups, variance=2) < direct:
                through = log_ratio(numerator.relative_to(reference), denominator.relative_to(reference))
                if through.method == "paired t" and _half_width(through.count, variance=2) < direct:
                    return replace(through, method="paired t through the base")
    return log_ratio(numerator, denominator)


@functools.cache
def _half_width(pairs: int, variance: float = 1.0) -> float:
    """t·s/√pairs that is to be expected of pairs of this variance; infinite of fewer than two."""
    return t_quantile(pairs - 1) * math.sqrt(variance / pairs) if pairs > 1 else math.inf


def stein_trials(pilot_deviation: float, pilot_trials: int, half_width: float) -> int:
    """P = max(P0, ⌈(t_{P0−1}·s0/h)²⌉): trials for a 95 % log interval of half-width `half_width` (Stein 1945).

    HarnessError on a pilot of fewer than two trials, and on a deviation or half-width that is not finite.
    """
    if pilot_trials < 2:
        raise HarnessError("a pilot of one trial has no variance: at least two are needed to plan the number of trials")
    if not (math.isfinite(pilot_deviation) and pilot_deviation >= 0):
        raise HarnessError(f"the pilot's standard deviation is {pilot_deviation}: expected a finite number, 0 or more")
    if not (math.isfinite(half_width) and half_width > 0):
        raise HarnessError(f"half_width: {half_width} given, expected a finite number above 0")
    needed = math.ceil((t_quantile(pilot_trials - 1) * pilot_deviation / half_width) ** 2)
    return max(pilot_trials, needed)


def stein_estimate(values: Sequence[float], pilot_trials: int) -> LogEstimate:
    """The mean of all P values with the *pilot's* s0 and t_{P0−1}, as Stein's procedure requires.

    The first `pilot_trials` values are the pilot. Using all P values' own s would make the interval too short, since P
    was chosen from s0. Holds for a cell (log throughputs) and for a ratio (paired log differences) alike. HarnessError
    for a pilot of fewer than 2 values or of more than there are.
    """
    if not 2 <= pilot_trials <= len(values):
        raise HarnessError(f"a pilot of {pilot_trials} of {len(values)} trials: expected between 2 and all of them")
    pilot = log_mean(values[:pilot_trials], "t")
    final = log_mean(values, "t")
    assert pilot.deviation is not None
    error = pilot.deviation / math.sqrt(len(values))
    return LogEstimate(final.mean, error, pilot_trials - 1, pilot.deviation, len(values), "Stein t")


def pooled_deviation(estimates: Iterable[LogEstimate]) -> float | None:
    """√(Σ ν_i·s_i² / Σ ν_i) over estimates that have a deviation; None when none has."""
    squares, freedom = 0.0, 0.0
    for estimate in estimates:
        if estimate.deviation is not None and estimate.degrees_of_freedom is not None:
            squares += estimate.degrees_of_freedom * estimate.deviation**2
            freedom += estimate.degrees_of_freedom
    return math.sqrt(squares / freedom) if freedom else None


def log_mean(values: Sequence[float], method: IntervalMethod) -> LogEstimate:
    """The mean of log values with s/√P and P − 1 degrees of freedom; HarnessError unless all are finite."""
    count = len(values)
    if not count:
        raise HarnessError("there is no value to average")
    for value in values:
        if not math.isfinite(value):
            raise HarnessError(f"a log value is {value}: it cannot be averaged or compared")
    mean = math.fsum(values) / count
    if count < 2:
        return LogEstimate(mean, None, None, None, count, "none")
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return LogEstimate(mean, deviation / math.sqrt(count), count - 1, deviation, count, method)


def welch(left: LogEstimate, right: LogEstimate) -> LogEstimate:
    """The difference of two independent means with Satterthwaite's degrees of freedom (Welch 1947).

    As `scipy.stats.ttest_ind_from_stats(equal_var=False)`, which tells neither the error nor the degrees of freedom
    that an interval and a plan are made of.

    `deviation` is its error times √count: what a trial a side changes, for planning.
    """
    mean, count = left.mean - right.mean, min(left.count, right.count)
    parts = [(side.standard_error, side.degrees_of_freedom) for side in (left, right)]
    known = [(error**2, freedom) for error, freedom in parts if error is not None and freedom is not None]
    if len(known) < 2:
        return LogEstimate(mean, None, None, None, count, "none")
    variance = math.fsum(square for square, _ in known)
    if variance == 0:
        freedom = math.fsum(freedom for _, freedom in known)
    else:
        # as shares of the sum, so that tiny variances do not underflow when squared
        freedom = 1 / math.fsum((square / variance) ** 2 / freedom for square, freedom in known)
    return LogEstimate(mean, math.sqrt(variance), freedom, math.sqrt(variance * count), count, "Welch t")
