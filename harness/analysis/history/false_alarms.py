"""How often a history marks a change where nothing changes, counted on the scatter of its own runs."""

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np

from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.history.change_points import FEWEST, change_points
from harness.analysis.history.series import SMALLEST_CHANGE, Series
from harness.record.validation import Rate

NULL_SERIES = 200
"""Series that are drawn: 2 of 200 is known to [0.1 – 3.6 %]."""
LONGEST = 30
"""Runs of a drawn series at most: the test takes the square of their number."""


def marked(values: Sequence[float]) -> list[int]:
    """The places of a series of logarithms that a history would mark: found, and larger than the smallest change."""
    found = [change.index for change in change_points(values)]
    edges = [0, *found, len(values)]
    means = [statistics.fmean(values[start:end]) for start, end in itertools.pairwise(edges)]
    steps = (abs(after - before) for before, after in itertools.pairwise(means))
    return [place for place, step in zip(found, steps, strict=True) if step >= math.log1p(SMALLEST_CHANGE)]


def false_alarms(series: Sequence[Series], count: int = NULL_SERIES) -> Rate | None:
    """How many of `count` series in which nothing changes would be marked; None when no series is long enough.

    Each is as long as one of `series`, at most LONGEST runs, and drawn with replacement from what the levels of that
    one leave over: it has their scatter, their outliers, and no change. Its runs are independent, which those that
    were recorded need not be; where they are not, there are more false alarms. The same series give the same count.
    """
    scatters = [_left_over(one) for one in series if len(one.points) >= FEWEST]
    if not scatters:
        return None
    chance = np.random.default_rng(1)
    alarms = 0
    for number in range(count):
        scatter = scatters[number % len(scatters)]
        drawn = chance.choice(scatter, size=min(LONGEST, len(scatter)))
        alarms += bool(marked([float(value) for value in drawn]))
    return clopper_pearson(alarms, count)


def _left_over(series: Series) -> list[float]:
    """Logarithms of a series' values less those of their levels."""
    logs = [math.log(point.value.value) for point in series.points]
    edges = [0, *(change.index for change in series.changes), len(logs)]
    parts = [logs[start:end] for start, end in itertools.pairwise(edges)]
    return [value - statistics.fmean(part) for part in parts for value in part]
