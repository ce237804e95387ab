"""Whether windows still become shorter or longer when they are measured: one test for all trials of a run.

`docs/protocol.md#timing` has the statistic, under *Trends*, and how often it finds what. A single trial cannot tell:
its windows scatter by 7 % (10–90 %: 4.6–10.7 %). A rule for single trials called 29 % of those without any trend
unsteady, while a warm-up of 10 % over 15 windows went unseen in two of three. A round is held against the median of
the group, each trial relative to its own level: a mean would lend the trend of one cell to all others, and without the
levels the cell in the middle would. Ranks scatter alike whatever a cell's scatter and tails, so they can be pooled.

**What it cannot see** is a trend that all trials share in the same rounds. It cancels in every ratio, not in a
throughput. Trials that take turns with no other are not judged: their trend is the machine's.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.analysis.estimates.verdict import holm

LEVEL = 0.05
"""Runs without any trend in which one is found at most."""
MATTERS = 0.01
"""A change from the first window to the last by less than this share is not worth a word."""
LEAST = 3
"""Windows that a trial needs."""

_Key = TypeVar("_Key", bound=Hashable)
Array = NDArray[np.float64]


def trends(groups: Iterable[Sequence[tuple[_Key, Sequence[float]]]]) -> dict[_Key, float]:
    """The cells whose windows change in the course of a trial, each with by how much.

    A group is the trials that took turns, each with what it belongs to (a cell, or a side of a comparison) and its
    window times in seconds, in the same rounds. The change is that of the fitted line from the first window to the
    last, relative to the others of the group, as a share: −0.05 is 5 % shorter.
    """
    slopes: defaultdict[_Key, list[tuple[float, float]]] = defaultdict(list)
    count = 0
    for group in groups:
        if len(group) > 1 and min(len(seconds) for _, seconds in group) >= LEAST:
            count += 1
            for (key, _), slope in zip(group, _slopes(np.log([seconds for _, seconds in group])), strict=True):
                slopes[key].append(slope)
    values = {key: np.array(found) for key, found in slopes.items()}
    spare = sum(len(found) - 1 for found in values.values())
    # of the trials of a group one follows from the others, relative to which it is
    freedom = spare - max(0, count - 1)
    if freedom < 1:
        return {}
    squares = math.fsum(float(((found[:, 0] - found[:, 0].mean()) ** 2).sum()) for found in values.values())
    deviation = max(math.sqrt(squares / spare), 1e-9)  # of made series, where all trials are the same
    statistics = [abs(float(found[:, 0].mean())) * math.sqrt(len(found)) / deviation for found in values.values()]
    p_values = holm([2 * float(special.stdtr(freedom, -statistic)) for statistic in statistics])
    changes = {key: math.expm1(float(found[:, 1].mean())) for key, found in values.items()}
    return {
        key: change
        for (key, change), p_value in zip(changes.items(), p_values, strict=True)
        if p_value <= LEVEL and abs(change) >= MATTERS
    }


def _slopes(logs: Array) -> list[tuple[float, float]]:
    """Of each trial of a group (rank correlation with the order × √(n − 1), change of the fitted line), of ln seconds.

    `logs` has a row a trial and a column a round.
    """
    rounds = logs.shape[1]
    level = logs - _median(logs.T)[:, None]
    relative = level - _median(level)
    order = np.arange(rounds) - (rounds - 1) / 2
    spread = float(order @ order)
    scores = (_ranks(relative) - (rounds - 1) / 2) @ order * (math.sqrt(rounds - 1) / spread)
    changes = relative @ order * ((rounds - 1) / spread)
    return list(zip(scores.tolist(), changes.tolist(), strict=True))


def _median(rows: Array) -> Array:
    """Of each column; numpy's own takes ten times as long for as few values as a group has."""
    ordered, half = np.sort(rows, axis=0), len(rows) // 2
    return np.asarray(ordered[half] if len(rows) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def _ranks(values: Array) -> Array:
    """Of each row, from 0; equal values share the mean of theirs, or their order in time would be a trend."""
    below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return np.asarray(below + (equal - 1) / 2)
