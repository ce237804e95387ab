"""A series as a line of blocks, for a terminal and a table."""

import itertools
import statistics
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], low: float | None = None, high: float | None = None, most: int = 0) -> str:
    """A block a value, the lowest at `low` and the highest at `high` (by default those of the values).

    With `most` above 0, neighbours are joined to their median until there are no more than that. Values beyond the
    ends are drawn at them.
    """
    shown = list(values)
    if most and len(shown) > most:
        edges = [round(place * len(shown) / most) for place in range(most + 1)]
        shown = [statistics.median(shown[a:b]) for a, b in itertools.pairwise(edges)]
    if not shown:
        return ""
    bottom = min(shown) if low is None else low
    top = max(shown) if high is None else high
    if not top > bottom:
        return BLOCKS[3] * len(shown)
    places = ((value - bottom) / (top - bottom) * (len(BLOCKS) - 1) for value in shown)
    return "".join(BLOCKS[min(len(BLOCKS) - 1, max(0, round(place)))] for place in places)
