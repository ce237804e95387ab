"""How strategies look: a colour and a marker each, the same in every figure of every report."""

import zlib
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from harness.report.figures.svg import DASHES, MARKERS, SERIES


class Look(NamedTuple):
    """Of what is drawn in several points."""

    colour: str
    marker: str
    dash: Hashable
    """As matplotlib's `linestyle`."""


_PLACES: dict[str, tuple[int, int]] = {
    "none": (0, 0),
    "central_storage": (1, 1),
    "mirrored": (2, 2),
    "multi_worker_mirrored": (3, 3),
    "parameter_server": (4, 4),
    "one_device": (5, 5),
    "dtensor": (6, 6),
    "tpu": (7, 7),
    "data_parallel": (7, 1),
    "multi_process": (6, 3),
    "distribution": (1, 4),
}
"""Of each strategy its colour and its marker. Those that share a colour are of engines with panels of their own."""
_STEP = 3
"""Markers between two curves of one strategy, so that each of as many as there are markers has its own."""


def looks(strategies: Sequence[str]) -> list[Look]:
    """A look for each curve by its strategy; further curves of the same one have its colour, and other marks and
    dashes."""
    earlier: Counter[str] = Counter()
    found = []
    for strategy in strategies:
        colour, marker = _PLACES.get(strategy) or _place_of(strategy)
        again = earlier[strategy]
        earlier[strategy] += 1
        mark, dash = MARKERS[(marker + _STEP * again) % len(MARKERS)], DASHES[(colour + again) % len(DASHES)]
        found.append(Look(SERIES[colour], mark, dash))
    return found


def _place_of(strategy: str) -> tuple[int, int]:
    """Of a strategy that is not in the table, from its name: another process finds the same. Never the base case's."""
    colours, number = len(SERIES) - 1, zlib.crc32(strategy.encode("utf-8", "replace"))
    return 1 + number % colours, number // colours % len(MARKERS)
