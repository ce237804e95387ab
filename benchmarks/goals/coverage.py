"""How often the intervals hold the truth, on synthetic series whose truth is known.

Every estimator of `harness.analysis.estimates.intervals` that enters a verdict or a table, and beside them two methods
that `docs/protocol.md#estimators` rejects, over every series of `series.py`, at 5 and at 12 blocks. The 95 %
intervals are to cover 93–97 %, the 90 % interval of the equivalence test 88–92 %. Limits are Clopper and Pearson's.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from best import layout_of, names
from common import table
from series import (
    SERIES,
    THETA,
    Array,
    Series,
    alternating,
    in_two_groups,
    log_throughput,
    one_run_after_the_other,
    taking_turns,
)

from harness.analysis.estimates.intervals import (
    CONFIDENCE,
    LogEstimate,
    Sample,
    cell_estimate,
    compare,
    log_ratio,
    stein_estimate,
    stein_trials,
    t_quantile,
)
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.estimates.verdict import TOST_CONFIDENCE, Margins
from harness.looks import looks_within
from harness.record.validation import Rate

BLOCKS = (5, 12)
PILOT = {5: 3, 12: 6}
"""Blocks of Stein's first stage, by the most blocks there may be."""
TOLERANCE = 0.02
Bounds = Iterator[tuple[float, float]]
TRIALS = (2, 3, 5, 10)
CELLS = ((4, 1.0), (4, 3.0), (4, 0.5), (12, 1.0), (12, 3.0))
"""How many there are of a run, and how many times as noisy as the others one of them is."""


@dataclass(frozen=True)
class Method:
    """One way to an interval. `bounds` takes step times (repetitions, sides, blocks, windows)."""

    name: str
    layout: Callable[[int], Array]
    bounds: Callable[[Array], Bounds]
    confidence: float = CONFIDENCE
    of_a_cell: bool = False
    """The interval is that of side A's throughput, not of a ratio."""


@dataclass(frozen=True)
class Coverage:
    """How often one method's interval held the truth."""

    method: Method
    series: Series
    blocks: int
    held: Rate

    @property
    def share(self) -> float:
        """The coverage."""
        return self.held.count / self.held.of

    @property
    def mark(self) -> str:
        """In words: met where both limits lie within the goal, missed where both lie on one side of it."""
        least, most = self.method.confidence - TOLERANCE, self.method.confidence + TOLERANCE
        if self.held.high < least:
            return "TOO LOW"
        if self.held.low > most:
            return "too wide"
        return "met" if least <= self.held.low and self.held.high <= most else "not shown"


def measure(method: Method, series: Series, blocks: int, repetitions: int) -> Coverage:
    """Draw, estimate and count."""
    held = int((reaches(method, series, blocks, repetitions) <= 1).sum())
    return Coverage(method, series, blocks, clopper_pearson(held, repetitions))


def reaches(method: Method, series: Series, blocks: int, repetitions: int, seed: int = 1) -> Array:
    """How far the truth lies from the middle of each interval, in halves of the interval: held at 1 or less."""
    chance = np.random.default_rng([seed, blocks, *series.name.encode()])
    truth = series.cell_truth() if method.of_a_cell else THETA
    low, high = np.array(list(method.bounds(series.step_times(chance, repetitions, method.layout(blocks))))).T
    return np.asarray(2 * np.abs(truth - (low + high) / 2) / (high - low))


def _known(estimate: LogEstimate, confidence: float = CONFIDENCE) -> tuple[float, float]:
    bounds = estimate.log_bounds(confidence)
    assert bounds is not None
    return bounds


def _names(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{index}" for index in range(count))


def cell_t(steps: Array) -> Bounds:
    """Side A alone."""
    names = _names("g", steps.shape[2])
    for values in log_throughput(steps[:, 0]).tolist():
        yield _known(cell_estimate(Sample(tuple(values), names)))


def paired_t(steps: Array, confidence: float = CONFIDENCE) -> Bounds:
    """B over A within each group."""
    names = _names("g", steps.shape[2])
    for a, b in log_throughput(steps).tolist():
        yield _known(log_ratio(Sample(tuple(b), names), Sample(tuple(a), names)), confidence)


def welch_t(steps: Array) -> Bounds:
    """B over A without a group in common."""
    of_a, of_b = _names("a", steps.shape[2]), _names("b", steps.shape[2])
    for a, b in log_throughput(steps).tolist():
        yield _known(log_ratio(Sample(tuple(b), of_b), Sample(tuple(a), of_a)))


def through_the_base(steps: Array) -> Bounds:
    """B over A, each against the base case of its own group."""
    blocks = tuple(range(steps.shape[2]))
    first, second = _names("first", len(blocks)), _names("second", len(blocks))
    for a, b, base_a, base_b in log_throughput(steps).tolist():
        base = Sample((*base_a, *base_b), first + second, blocks + blocks)
        estimate = compare(Sample(tuple(b), second, blocks), Sample(tuple(a), first, blocks), [base])
        assert estimate.method == "paired t through the base"
        yield _known(estimate)


def stein_pairs(steps: Array) -> Bounds:
    """B over A, the number of pairs planned from the pilot."""
    logs = log_throughput(steps)
    return _stein(logs[:, 1] - logs[:, 0])


def stein_cell(steps: Array) -> Bounds:
    """Side A alone, the number of trials planned from the pilot."""
    return _stein(log_throughput(steps[:, 0]))


def looked(steps: Array) -> Bounds:
    """B over A as `ab` has it: at the look at which it stops, by the margins that it has unless others are given."""
    logs = log_throughput(steps)
    looks, margins = Looks.planned(looks_within(logs.shape[2])), Margins()
    for row in (logs[:, 1] - logs[:, 0]).tolist():
        for number, after in enumerate(looks.after, start=1):
            if after == len(row) or looks.stops(row[:after], number, margins):
                yield _known(looks.estimate(row[:after], number))
                break


def _stein(values: Array) -> Bounds:
    """A half-width that a usual pilot would want half of the second stage for, so that every plan occurs."""
    most = values.shape[1]
    pilot = PILOT[most]
    deviations = values[:, :pilot].std(axis=1, ddof=1)
    half_width = t_quantile(pilot - 1) * float(np.median(deviations)) / np.sqrt((pilot + most) / 2)
    for row, deviation in zip(values.tolist(), deviations.tolist(), strict=True):
        trials = min(most, stein_trials(deviation, pilot, half_width))
        yield _known(stein_estimate(row[:trials], pilot))


def bootstrap(steps: Array, resamples: int = 999) -> Bounds:
    """Rejected: percentiles of the mean of pairs drawn again with replacement (Efron)."""
    logs = log_throughput(steps)
    pairs = logs[:, 1] - logs[:, 0]
    blocks = pairs.shape[1]
    chance = np.random.default_rng(2)
    for part in np.array_split(pairs, max(1, len(pairs) // 100)):
        counts = chance.multinomial(blocks, [1 / blocks] * blocks, resamples)
        limits = np.quantile(part @ counts.T / blocks, [0.025, 0.975], axis=1)
        yield from zip(limits[0].tolist(), limits[1].tolist(), strict=True)


def pooled_windows(steps: Array) -> Bounds:
    """Rejected: Student's t on the windows of all trials as if they were independent."""
    logs = -np.log(steps).reshape(*steps.shape[:2], -1)
    count = logs.shape[2]
    difference = (logs[:, 1] - logs[:, 0]).mean(axis=1)
    error = np.sqrt(logs.var(axis=2, ddof=1).sum(axis=1) / count)
    half = t_quantile(2 * count - 2) * error
    return zip((difference - half).tolist(), (difference + half).tolist(), strict=True)


def cells_that_hold(cells: int, times: float, trials: int, repetitions: int) -> float:
    """How often the interval of one cell over another of a run of so many holds the truth, the first of them being
    `times` as noisy as the others: of that one, or where it is quieter of two others, to which it lends."""
    chance = np.random.default_rng([1, cells, trials])
    spread = np.where(np.arange(cells), 0.01, 0.01 * times)[:, None]
    one = names(cells)[0 if times >= 1 else 1]
    held = 0
    for _ in range(repetitions):
        logs = spread * chance.standard_normal((cells, trials)) + 0.1 * chance.standard_normal(trials)
        low, high = _known(layout_of(logs).ratio(one, names(cells)[-1]))
        held += low <= 0 <= high
    return held / repetitions


METHODS: tuple[Method, ...] = (
    Method("paired t", taking_turns, paired_t),
    Method("paired t, 90 %", taking_turns, lambda steps: paired_t(steps, TOST_CONFIDENCE), TOST_CONFIDENCE),
    Method("repeated t of pairs", taking_turns, looked),
    Method("Stein t of pairs", taking_turns, stein_pairs),
    Method("paired t through the base", in_two_groups, through_the_base),
    Method("Welch t, trials alternate", alternating, welch_t),
    Method("Welch t, run after run", one_run_after_the_other, welch_t),
    Method("t of one cell", taking_turns, cell_t, of_a_cell=True),
    Method("Stein t of one cell", taking_turns, stein_cell, of_a_cell=True),
)
REJECTED: tuple[Method, ...] = (
    Method("bootstrap percentiles of pairs", taking_turns, bootstrap),
    Method("windows pooled, Student's t", taking_turns, pooled_windows),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=4000)
    repetitions = parser.parse_args().repetitions
    print(f"coverage in %, with 95 % limits; {repetitions:,} repetitions of each\n")
    for series in SERIES:
        print(f"  {series.name}: {series.words}")
    for title, methods in (("in use", METHODS), ("rejected by the protocol", REJECTED)):
        print(f"\n{title}")
        rows = [("method", "series", *(text for blocks in BLOCKS for text in (f"{blocks} blocks", "limits", "")))]
        for method in methods:
            for series in SERIES:
                found = [measure(method, series, blocks, repetitions) for blocks in BLOCKS]
                rows.append((method.name, series.name, *(text for one in found for text in _texts(one))))
        table(rows)
    print("\ncells of one run, moderated variances")
    rows = [("cells", "one is so noisy", *(f"{trials} trials" for trials in TRIALS))]
    for cells, times in CELLS:
        shares = [cells_that_hold(cells, times, trials, repetitions) for trials in TRIALS]
        rows.append((str(cells), f"{times:g} times", *(f"{share:.1%}" for share in shares)))
    table(rows)


def _texts(found: Coverage) -> tuple[str, str, str]:
    return f"{found.share:.1%}", f"{found.held.low:.1%}–{found.held.high:.1%}", found.mark


if __name__ == "__main__":
    main()
