"""Figures in set margins: rows with names on the left, pairs of axes beside each other, keys above; and their axes.

matplotlib can lay a figure out by itself, but it measures every word three times to do it, and makes each tick of five
parts: that takes several times as long as what is to be shown. And it measures in a font of its own, while the page's
words are in the reader's. So widths are estimated here, on the wide side, and an axis is its words, one shape of marks
and one of grid lines.
"""

import functools
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.analysis import Interval
from harness.report.figures.artists import (
    TICKDOWN,
    TICKLEFT,
    Artist,
    Axes,
    Figure,
    MaxNLocator,
    Path,
    PathPatch,
)
from harness.report.figures.svg import GRID, HATCHES, INK, MUTED, PAPER, SERIES
from harness.report.words.text import names_apart

POINTS = 72
"""To the inch; what matplotlib's font sizes and paddings are in."""
LABEL_PT, KEY_PT = 10, 9
FEW_POWERS = 4
"""Powers of ten between which a logarithmic axis has ticks at 2 and 5 times them, too."""
_BESIDE, _RIGHT, _BETWEEN, _BELOW, _ABOVE, _KEYS = 8.0, 16.0, 18.0, 40.0, 8.0, 17.0
"""Points: names – axes, axes – edge, axes – axes, room for ticks and the label, room above, a row of keys."""
NAME_LETTERS, _NAMES_SHARE = 56, 0.4
"""Of a row's name at most, and the share of a figure's width that names get before they make it wider."""
_TICK_PT, _LABEL_BELOW_PT = 7.0, 21.0
"""Points from the axes to the words of a tick, and to a label below those."""
_TICKS: dict[str, Any] = {
    "color": MUTED,
    "linestyle": "none",
    "markersize": 3.5,
    "markeredgewidth": 0.8,
    "clip_on": False,
}
_GRID: dict[str, Any] = {"color": GRID, "linewidth": 0.8, "zorder": 0.5}
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
    names: Mapping[int, str] | Mapping[float, str],
    rows: int,
    *,
    width: float,
    row: float,
    panels: int = 1,
    keys: Sequence[Artist] = (),
    columns: int = 1,
) -> tuple[Figure, list[Axes]]:
    """A figure with `panels` axes of `rows` rows, each `row` inches high, and names left of them.

    It is `width` inches wide, or wider where names are long.
    Row 0 is on top; `names` says at which row each stands. `keys` are the handles of a legend above, `columns` to a
    row of it. To be called under `style`.
    """
    names = dict(zip(names, names_apart(list(names.values()), NAME_LETTERS), strict=True))
    left = _BESIDE + max(map(width_pt, names.values())) + 4
    whole = POINTS * width + max(0.0, left - _NAMES_SHARE * POINTS * width)
    above = _ABOVE + _KEYS * -(-len(keys) // columns)
    high = (rows + 0.2) * row * POINTS
    total = high + above + _BELOW
    wide = (whole - left - _RIGHT - _BETWEEN * (panels - 1)) / panels
    figure = Figure(figsize=(whole / POINTS, total / POINTS))
    made = []
    for number in range(panels):
        place = ((left + number * (wide + _BETWEEN)) / whole, _BELOW / total, wide / whole, high / total)
        axes = figure.add_axes(place)
        axes.set_ylim(rows - 0.4, -0.6)
        axes.xaxis.set_visible(False)
        axes.yaxis.set_visible(False)
        made.append(axes)
    _write_names(made[0], names, -_BESIDE / wide)
    if keys:
        figure.legend(handles=list(keys), loc="upper center", ncols=columns, fontsize=KEY_PT, borderaxespad=0.2)
    return figure, made


def _write_names(axes: Axes, names: Mapping[int, str] | Mapping[float, str], x: float) -> None:
    """A name at each row, which ends at `x`, as a share of the width of the axes."""
    across = axes.get_yaxis_transform()
    for at, name in names.items():
        axes.text(x, at, name, transform=across, ha="right", va="center_baseline", fontsize=LABEL_PT, color=INK)


def points_wide(axes: Axes) -> float:
    """How wide the axes are, in points."""
    return _whole(axes)[0] * float(axes.get_position().width)


def points_high(axes: Axes) -> float:
    """How high the axes are, in points."""
    return _whole(axes)[1] * float(axes.get_position().height)


def _whole(axes: Axes) -> tuple[float, float]:
    """Width and height of the figure that the axes are in, in points."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return POINTS * float(figure.get_figwidth()), POINTS * float(figure.get_figheight())


def x_axis(axes: Axes, ticks: Sequence[float], words: Sequence[str], label: str, *, grid: bool = True) -> None:
    """Ticks below the axes with their words, and the axis' label below them. Limits and place are set by then."""
    across, high = axes.get_xaxis_transform(), points_high(axes)
    if grid:
        xs = [value for tick in ticks for value in (tick, tick, np.nan)]
        axes.plot(xs, [0, 1, np.nan] * len(ticks), transform=across, **_GRID)
    axes.plot(ticks, [0] * len(ticks), marker=TICKDOWN, transform=across, **_TICKS)
    for tick, word in zip(ticks, words, strict=True):
        axes.text(tick, -_TICK_PT / high, word, transform=across, ha="center", va="top", fontsize=LABEL_PT, color=INK)
    axes.text(
        0.5,
        -_LABEL_BELOW_PT / high,
        label,
        transform=axes.transAxes,
        ha="center",
        va="top",
        fontsize=LABEL_PT,
        color=INK,
    )


def y_axis(axes: Axes, ticks: Sequence[float], words: Sequence[str], label: str, *, label_pt: float) -> None:
    """Ticks left of the axes with their words and a grid, and the axis' label `label_pt` points from the axes."""
    along, wide = axes.get_yaxis_transform(), points_wide(axes)
    ys = [value for tick in ticks for value in (tick, tick, np.nan)]
    axes.plot([0, 1, np.nan] * len(ticks), ys, transform=along, **_GRID)
    axes.plot([0] * len(ticks), ticks, marker=TICKLEFT, transform=along, **_TICKS)
    for tick, word in zip(ticks, words, strict=True):
        axes.text(
            -_TICK_PT / wide,
            tick,
            word,
            transform=along,
            ha="right",
            va="center_baseline",
            fontsize=LABEL_PT,
            color=INK,
        )
    axes.text(
        -label_pt / wide,
        0.5,
        label,
        transform=axes.transAxes,
        ha="center",
        va="bottom",
        rotation="vertical",
        rotation_mode="anchor",
        fontsize=LABEL_PT,
        color=INK,
    )


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between both; over several powers these alone."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= FEW_POWERS else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def round_ticks(low: float, high: float, most: int) -> tuple[list[float], list[str]]:
    """At most `most` + 1 round numbers from `low` to `high`, and their words, each with as many decimals."""
    room = 1e-9 * (high - low)
    found = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    ticks = [float(tick) + 0.0 for tick in found if low - room <= tick <= high + room]
    step = abs(found[1] - found[0])
    decimals = next((d for d in range(12) if abs(step - round(step, d)) < 1e-6 * step), 12)
    return ticks, [f"{round(tick, decimals) + 0.0:,.{decimals}f}" for tick in ticks]


def whiskers(axes: Axes, intervals: Iterable[tuple[float, Interval]], **look: Any) -> None:
    """The line of each interval that is known, in its row."""
    known = [(row, (of.low, of.high)) for row, of in intervals if of.low is not None and of.high is not None]
    bars(axes, [row for row, _ in known], [ends for _, ends in known], **look)


def bars(axes: Axes, rows: Sequence[float], ends: Sequence[tuple[float, float]], **look: Any) -> None:
    """A line from the one end to the other in each row, all of them one drawn thing."""
    if rows:
        xs = [value for low, high in ends for value in (low, high, np.nan)]
        ys = [value for row in rows for value in (row, row, np.nan)]
        axes.plot(xs, ys, solid_capstyle="butt", **look)


BAR = 0.34
"""Half of a bar's height, in rows."""


def bar_look(look: int) -> dict[str, Any]:
    """How a part of a bar is filled, in the figure and in its key."""
    return {"facecolor": SERIES[look], "edgecolor": PAPER, "hatch": HATCHES[look]}


def bar_parts(axes: Axes, look: int, spans: Iterable[tuple[float, float, float]], *, top: float = BAR) -> None:
    """A part of several bars as one shape, for a hatch each would be most of a page: (row, from, to) of each, from
    `top` of a row above its middle down to `BAR` below it."""
    shapes = [
        Path([(low, y - top), (high, y - top), (high, y + BAR), (low, y + BAR), (low, y - top)])
        for y, low, high in spans
        if high > low
    ]
    if shapes:
        axes.add_patch(PathPatch(Path.make_compound_path(*shapes), linewidth=0.6, **bar_look(look)))


def bar_ends(axes: Axes, ends: Sequence[float], words: Sequence[str]) -> None:
    """A few words behind the end of the bar of each row. The axes have their limits."""
    beside = 4 * (axes.get_xlim()[1] - axes.get_xlim()[0]) / points_wide(axes)
    for y, (end, word) in enumerate(zip(ends, words, strict=True)):
        axes.text(end + beside, y, word, va="center_baseline", fontsize=8, color=INK)
