"""How strategies look: a colour and a marker each, of those of the harness the same in every figure of every report."""

import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
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
    places = _places(strategies)
    earlier: Counter[str] = Counter()
    found = []
    for strategy in strategies:
        colour, marker = places[strategy]
        again = earlier[strategy]
        earlier[strategy] += 1
        mark, dash = MARKERS[(marker + _STEP * again) % len(MARKERS)], DASHES[(colour + again) % len(DASHES)]
        found.append(Look(SERIES[colour], mark, dash))
    return found


def _places(strategies: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The place of each; of one that is not in the table the first of its own that nothing beside it is at, of a colour
    that nothing beside it has as long as there is one."""
    named = dict.fromkeys(strategies)
    places = {strategy: _PLACES[strategy] for strategy in named if strategy in _PLACES}
    for strategy in sorted(named.keys() - places.keys()):
        own, taken = _own_places(strategy), {*places.values()}
        free = [place for place in own if place not in taken] or own
        colours = {colour for colour, _ in taken}
        places[strategy] = next((place for place in free if place[0] not in colours), free[0])
    return places


def _own_places(strategy: str) -> list[tuple[int, int]]:
    """All places but those of the base case's colour, in an order that follows from the name: another process finds the
    same."""
    colours, first = len(SERIES) - 1, zlib.crc32(strategy.encode("utf-8", "replace"))
    numbers = range(first, first + colours * len(MARKERS))
    return [(1 + number % colours, number // colours % len(MARKERS)) for number in numbers]
