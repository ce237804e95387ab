"""Pairs of trials that took turns: the data of an A/B decision."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from harness.analysis.estimates.intervals import LogEstimate, log_mean, stein_estimate, stein_trials
from harness.record.trial import TrialRecord


@dataclass(frozen=True)
class Pair:
    """Two good trials of one group: side a and side b."""

    a: TrialRecord
    b: TrialRecord

    @property
    def block(self) -> int:
        """The block both ran in."""
        return self.a.block

    @property
    def wall(self) -> float:
        """ln(X_b/X_a), X the throughput."""
        return math.log(_positive(self.b.throughput) / _positive(self.a.throughput))

    @property
    def cpu(self) -> float | None:
        """ln of what is done per CPU second, B over A; None where the clock of processor time saw nothing."""
        a, b = self.a.cpu_seconds_each, self.b.cpu_seconds_each
        return math.log(a / b) if a and b else None


def pairs_of(trials: Sequence[TrialRecord], a: str = "a", b: str = "b") -> tuple[Pair, ...]:
    """The complete pairs of two sides in the order of their blocks: both measured, both in one group.

    One pair a block. A block of several arms that was interrupted runs again as a whole though two of them
    had ended well: the later pair counts, whatever either says.
    """
    good = [trial for trial in trials if trial.measured]
    of_b = {trial.group: trial for trial in good if trial.side == b}
    pairs = [Pair(trial, of_b[trial.group]) for trial in good if trial.side == a and trial.group in of_b]
    latest = {pair.block: pair for pair in sorted(pairs, key=lambda pair: pair.a.attempt)}
    return tuple(latest[block] for block in sorted(latest))


def took_turns(trials: Iterable[TrialRecord], sides: Iterable[tuple[str, str]]) -> bool:
    """Whether the two of each of `sides` have trials in one group, however these ended, but for interrupted ones."""
    groups: dict[str, set[str]] = {}
    for trial in trials:
        if trial.status != "interrupted" and trial.side is not None:
            groups.setdefault(trial.group, set()).add(trial.side)
    return all(any({a, b} <= there for there in groups.values()) for a, b in sides)


def estimate_of(values: Sequence[float], pilot: int | None) -> LogEstimate:
    """The mean of paired log differences: Stein's when more were planned from the `pilot` first ones, else t.

    HarnessError on a value that is not finite, or without values.
    """
    if pilot is not None and 2 <= pilot < len(values):
        return stein_estimate(values, pilot)
    return log_mean(values, "paired t")


Estimator = Callable[[Sequence[float]], LogEstimate]


def by_clock(pairs: Sequence[Pair], estimate: Estimator) -> tuple[LogEstimate, LogEstimate | None]:
    """Wall and processor time, estimated; the latter None unless its clock saw every pair. Needs pairs."""
    cpu = [value for pair in pairs if (value := pair.cpu) is not None]
    return estimate([pair.wall for pair in pairs]), estimate(cpu) if len(cpu) == len(pairs) else None


def blocks_wanted(pilot: Sequence[float], half_width: float, most: int) -> int:
    """P = min(most, max(P0, ⌈(t_{P0−1}·s0/h)²⌉)): blocks in all, from the pilot's spread alone (Stein 1945).

    Never from its mean: a plan that looked at the result would raise the rate of false alarms.
    """
    deviation = log_mean(pilot, "paired t").deviation
    if deviation is None:
        return len(pilot)
    return max(len(pilot), min(most, stein_trials(deviation, len(pilot), half_width)))


def pilot_count(pairs: Sequence[Pair], second_stage: Collection[int]) -> int | None:
    """How many of `pairs` belong to the first stage; None when there was no second."""
    return sum(pair.block not in second_stage for pair in pairs) if second_stage else None


def _positive(value: float | None) -> float:
    assert value is not None, "a measured trial has a throughput"
    return value
