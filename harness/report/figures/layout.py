"""Figures with a row for each cell: names on the left, pairs of axes beside each other, keys above, in set margins.

matplotlib can lay such a figure out by itself, but measures every word three times to do it, which takes longer than
drawing it. And it measures in a font of its own, while the page's words are in the reader's: so their widths are
estimated here, on the wide side.
"""

import functools
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from harness.report.figures.svg import INK

POINTS = 72
"""To the inch; what matplotlib's font sizes and paddings are in."""
LABEL_PT, KEY_PT = 10, 9
_BESIDE, _RIGHT, _BETWEEN, _BELOW, _ABOVE, _KEYS = 8.0, 16.0, 18.0, 40.0, 8.0, 17.0
"""Points: names – axes, axes – edge, axes – axes, room for ticks and the label, room above, a row of keys."""
_NARROW, _WIDE = frozenset(" iljtfr.,:;|!'()[]/\\"), frozenset("mwMW@%—…×÷±")


@functools.lru_cache(maxsize=4096)
def width_pt(text: str, size: float = LABEL_PT) -> float:
    """About how wide `text` is in a sans-serif font of `size` points, rather too wide than too narrow."""
    return size * sum(map(_em, text))


def _em(letter: str) -> float:
    if letter in _NARROW:
        return 0.4
    if letter in _WIDE:
        return 0.95
    if not letter.isascii() and unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.7 if letter.isupper() else 0.61


def row_axes(
    names: Mapping[float, str], rows: int, *, width: float, row: float, panels: int = 1, keys: Sequence[Artist] = (),
    columns: int = 1,
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """A figure `width` inches wide with `panels` axes of `rows` rows, each `row` inches high, and names left of them.

    Row 0 is on top; `names` says at which row each stands. `keys` are the handles of a legend above, `columns` to a
    row of it. To be called under `style`.
    """
    whole = POINTS * width
    left = min(0.5 * whole, _BESIDE + max(map(width_pt, names.values())) + 4)
    above = _ABOVE + _KEYS * -(-len(keys) // columns)
    high = (rows + 0.2) * row * POINTS
    total = high + above + _BELOW
    wide = (whole - left - _RIGHT - _BETWEEN * (panels - 1)) / panels
    figure = Figure(figsize=(width, total / POINTS))
    made = []
    for number in range(panels):
        place = ((left + number * (wide + _BETWEEN)) / whole, _BELOW / total, wide / whole, high / total)
        axes = figure.add_axes(place)
        axes.set_ylim(rows - 0.4, -0.6)
        axes.yaxis.set_major_locator(NullLocator())
        axes.xaxis.set_label_coords(0.5, -(_BELOW - 13) / high)
        axes.grid(axis="x")
        made.append(axes)
    for at, name in names.items():
        made[0].text(-_BESIDE / wide, at, name, transform=made[0].get_yaxis_transform(), ha="right",
                     va="center_baseline", fontsize=LABEL_PT, color=INK)  # fmt: skip
    if keys:
        figure.legend(handles=list(keys), loc="upper center", ncols=columns, fontsize=KEY_PT, borderaxespad=0.2)
    return figure, made


def points_wide(axes: Axes) -> float:
    """How wide the axes are, in points."""
    figure = axes.get_figure()
    assert figure is not None
    return float(axes.get_position().width * figure.get_figwidth() * POINTS)


def bars(axes: Axes, rows: Sequence[float], ends: Sequence[tuple[float, float]], **look: object) -> None:
    """A line from the one end to the other in each row, all of them one drawn thing."""
    if rows:
        xs = [value for low, high in ends for value in (low, high, np.nan)]
        ys = [value for row in rows for value in (row, row, np.nan)]
        axes.plot(xs, ys, solid_capstyle="butt", **look)


def settle(*all_axes: Axes) -> None:
    """Tell the axes that their labels stay where they are: otherwise each tick's words are measured to move them.

    To be called when limits, ticks and the places of labels are set.
    """
    for axes in all_axes:
        for axis in (axes.xaxis, axes.yaxis):
            for tick in axis.get_major_ticks():
                tick.label1.set_in_layout(False)
