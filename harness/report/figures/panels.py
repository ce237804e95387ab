"""Panels of curves with their intervals as bands: what scaling and batch size are drawn with.

Curves are told apart three times over, by colour, marker and dash, so that they are in grey too.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from textwrap import wrap

import numpy as np

from harness.analysis import Interval
from harness.report.figures.artists import Axes, Figure
from harness.report.figures.compact import OVERLAY
from harness.report.figures.layout import LABEL_PT, POINTS, points_high, round_ticks, x_axis, y_axis
from harness.report.figures.looks import Look
from harness.report.figures.looks import looks as looks_by
from harness.report.figures.svg import BAND, INK, MUTED, PAPER, Key, PanelDrawing, style
from harness.report.words.text import listed, names_apart, significant

MOST_CURVES = 8
"""As many as there are colours and markers; more cannot be followed."""
MOST_PANELS = 6
_SIZE = (3.55, 2.95)
_KEY_LETTERS = 60
"""Of a curve's name in the legend."""
_WHOLE = "no strategy, whole machine"
_RIGHT, _TOP, _BOTTOM = 0.975, 0.915, 0.155
"""Edges of the axes as shares of the panel: all panels are of one size, so that they line up."""
_Y_LABEL = 12.5
"""Points from the left edge to the label there."""
_TITLE_LETTERS, _TITLE_LINE = 38, 0.058
"""Of a line of the title, and how high a line is as a share of the panel."""
_MOST_APART = 4
"""How many times as high as the lowest panel the highest may be where all have one axis."""
_ABOVE_POINTS = 1.7
"""How many times the highest point of a panel its axis reaches at most for a limit that nothing comes near."""


@dataclass(frozen=True)
class Point:
    """One cell on a curve."""

    x: int
    interval: Interval
    cell_id: str = ""
    hollow: bool = False
    """Of a cell that is unproved."""


@dataclass(frozen=True)
class Curve:
    """Cells that are joined by a line."""

    label: str
    points: tuple[Point, ...]
    ringed: frozenset[int] = frozenset()
    """x of the points that are set apart."""
    strategy: str = ""
    """Whose look it has; empty: one by its label."""

    @property
    def highest(self) -> float:
        """Its largest value."""
        return max(point.interval.value for point in self.points)

    def told(self, unproved: Collection[str], engine: str) -> "Curve":
        """With hollow points where cells are unproved, and the engine where nothing else says it."""
        points = tuple(replace(point, hollow=point.cell_id in unproved) for point in self.points)
        return replace(self, label=", ".join(filter(None, (self.label, engine))), points=points)


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    curves: tuple[Curve, ...]
    x_label: str
    y_label: str
    ideal: tuple[tuple[int, float], ...] = ()
    bound: tuple[tuple[int, float], ...] = ()
    overlay: tuple[tuple[str, tuple[tuple[int, float], ...]], ...] = ()
    """(letter, points) of curves that are hidden until asked for."""
    floor: float = 0.0
    """Where the value axis starts."""
    top: float = 0.0
    """Where it ends; 0 leaves that to what is drawn."""
    whole: Point | None = None
    """No strategy on the whole machine, a line across the panel."""
    logarithmic: bool = False
    """Whether the horizontal axis is in powers of two."""

    @property
    def ticks(self) -> tuple[int, ...]:
        """Every x at which something was measured."""
        return tuple(sorted({point.x for curve in self.curves for point in curve.points}))


CurveLooks = Mapping[str, Look]


def looks_of(panels: Sequence[Panel]) -> dict[str, Look]:
    """A look for each of the curves that are drawn, in their first order: `MOST_CURVES`, those with a ring, which words
    point at, before others, and the highest of them."""
    highest: dict[str, float] = {}
    for panel in panels:
        for curve in panel.curves:
            highest[curve.label] = max(curve.highest, highest.get(curve.label, -math.inf))
    ringed = {curve.label for panel in panels for curve in panel.curves if curve.ringed}
    kept = set(sorted(highest, key=lambda label: (label not in ringed, -highest[label]))[:MOST_CURVES])
    strategies = {curve.label: curve.strategy or curve.label for panel in panels for curve in panel.curves}
    drawn = [label for label in highest if label in kept]
    return dict(zip(drawn, looks_by([strategies[label] for label in drawn]), strict=True))


def hollow_words(panels: Sequence[Panel]) -> str:
    """What a hollow mark is, where there is one."""
    any_hollow = any(point.hollow for panel in panels for curve in panel.curves for point in curve.points)
    return " A hollow mark is unproved: measured, but a fault could have gone unseen." if any_hollow else ""


def left_out_words(panels: Sequence[Panel], looks: CurveLooks, drawn: int) -> str:
    """What found no room, and where it is; empty when all is drawn."""
    curves = len({curve.label for panel in panels for curve in panel.curves} - set(looks))
    parts = []
    if curves:
        ringed = any(curve.ringed for panel in panels for curve in panel.curves)
        which = "those with a ring and the highest" if ringed else "the highest"
        parts.append(f"{len(looks)} of {len(looks) + curves} curves are drawn, {which}")
    if len(panels) > drawn:
        parts.append(f"{drawn} of {len(panels)} panels are drawn")
    return f" For room {' and '.join(parts)}: the table and the CSV have all." if parts else ""


def draw_panel(panel: Panel, looks: CurveLooks) -> PanelDrawing:
    """The panel with those of its curves that have a look."""
    curves = [curve for curve in panel.curves if curve.label in looks]
    with style():
        figure = Figure(figsize=_SIZE)
        top = panel.top or top_of(panel, looks)
        digits = max(6, len(f"{top:,.0f}"))
        left = 0.083 + 0.022 * digits
        title = wrap(panel.title, _TITLE_LETTERS)
        above = _TOP - (len(title) - 1) * _TITLE_LINE
        axes = figure.add_axes((left, _BOTTOM, _RIGHT - left, above - _BOTTOM))
        for points, dash, width in ((panel.ideal, "--", 1.1), (panel.bound, ":", 1.8)):
            if points:
                axes.plot(*zip(*points, strict=True), color=MUTED, linestyle=dash, linewidth=width)
        if panel.whole is not None:
            axes.axhline(panel.whole.interval.value, color=INK, linewidth=1.1)
        for curve in curves:
            _draw_curve(axes, curve, looks[curve.label])
        _set_axes(axes, panel, top, "\n".join(title), label_pt=left * _SIZE[0] * POINTS - _Y_LABEL)
        _draw_overlay(axes, panel)
    return PanelDrawing(figure, panel.title, _describe(panel, curves))


def keys(looks: CurveLooks, *, ideal: bool, bound: bool, bands: bool, whole: bool = False) -> list[Key]:
    """The legend."""
    entries = [
        Key(label, *look) for label, look in zip(names_apart(list(looks), _KEY_LETTERS), looks.values(), strict=True)
    ]
    if whole:
        entries.append(Key(_WHOLE, INK, dash="-"))
    if ideal:
        entries.append(Key("ideal", MUTED, dash="--"))
    if bound:
        entries.append(Key("bound by processors", MUTED, dash=":"))
    if bands:
        entries.append(Key("band: 95 % interval", MUTED))
    return entries


def has_bands(panels: Sequence[Panel]) -> bool:
    """Whether some point has an interval."""
    return any(point.interval.known for panel in panels for curve in panel.curves for point in curve.points)


def _draw_curve(axes: Axes, curve: Curve, look: Look) -> None:
    colour, marker, dash = look
    xs = [point.x for point in curve.points]
    values = [point.interval.value for point in curve.points]
    axes.plot(xs, values, color=colour, marker=marker, linestyle=dash)
    hollow = [point for point in curve.points if point.hollow]
    if hollow:
        at = [point.x for point in hollow], [point.interval.value for point in hollow]
        axes.plot(*at, color=colour, marker=marker, markerfacecolor=PAPER, linestyle="none")
    ringed = [point for point in curve.points if point.x in curve.ringed]
    if ringed:
        axes.plot(
            [p.x for p in ringed],
            [p.interval.value for p in ringed],
            color=INK,
            marker="o",
            markersize=12,
            markerfacecolor="none",
            linestyle="none",
        )
    known = [point for point in curve.points if point.interval.low is not None and point.interval.high is not None]
    lows = [point.interval.low or 0.0 for point in known]
    highs = [point.interval.high or 0.0 for point in known]
    if len(known) > 1 and len(known) == len(curve.points):
        axes.fill_between([point.x for point in known], lows, highs, color=colour, alpha=BAND, linewidth=0)
    if known:
        stems = [value for point in known for value in (float(point.x), float(point.x), math.nan)]
        ends = [value for low, high in zip(lows, highs, strict=True) for value in (low, high, math.nan)]
        axes.plot(stems, ends, color=colour, linewidth=1.2)


def _draw_overlay(axes: Axes, panel: Panel) -> None:
    """Faint curves, each with its letter on it, one further along than the other; axes stay as they are."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for number, (letter, points) in enumerate(panel.overlay):
        xs, ys = zip(*points, strict=True)
        line = axes.plot(xs, ys, color=MUTED, linewidth=0.9, alpha=0.7)[0]
        line.set_gid(f"{OVERLAY}-line{number}")
        at = left + (right - left) * (0.25 + 0.6 * number / max(1, len(panel.overlay) - 1))
        height = float(np.interp(at, xs, ys))
        if xs[0] <= at <= xs[-1] and low <= height <= high:
            text = axes.text(at, height, letter, fontsize=8, color=INK, ha="center", va="center")
            text.set_gid(f"{OVERLAY}-letter{number}")


def top_of(panel: Panel, looks: Collection[str]) -> float:
    """Where the value axis ends by what is drawn of the panel: the axis follows the points. The ideal, or an interval
    of two trials, may run out of it, or all points would share a strip at the bottom."""
    values = [point.interval.value for curve in panel.curves if curve.label in looks for point in curve.points]
    values += [panel.whole.interval.value] if panel.whole else []
    values += [min(y, _ABOVE_POINTS * max(values, default=y)) for _, y in (*panel.ideal, *panel.bound)]
    top = 1.06 * max(values, default=1.0)
    return top + 0.04 * (top - panel.floor)


def with_one_top(panels: Sequence[Panel], looks: CurveLooks) -> list[Panel]:
    """The panels, with one end of their value axes, so that they can be compared by eye; each with its own where the
    lowest would be squeezed."""
    tops = [top_of(panel, looks) for panel in panels]
    return [replace(panel, top=max(tops)) if max(tops) <= _MOST_APART * min(tops) else panel for panel in panels]


def _set_axes(axes: Axes, panel: Panel, top: float, title: str, *, label_pt: float) -> None:
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    axes.set_ylim(panel.floor, top)
    ticks = panel.ticks
    first, last = ticks[0], ticks[-1]
    if panel.logarithmic:
        axes.set_xscale("log", base=2)
        axes.set_xlim(first / 1.25, last * 1.25)
    else:
        room = 0.08 * (last - first or 1)
        axes.set_xlim(first - room, last + room)
    shown = ticks if len(ticks) <= 8 else ticks[:: -(-len(ticks) // 8)]
    x_axis(axes, shown, [f"{tick:,}" for tick in shown], panel.x_label, grid=False)
    y_axis(axes, *round_ticks(panel.floor, top, most=5), panel.y_label, label_pt=label_pt)
    axes.text(0, 1 + 6 / points_high(axes), title, transform=axes.transAxes, fontsize=LABEL_PT, color=INK)


def _describe(panel: Panel, curves: Sequence[Curve]) -> str:
    gaps = {b - a for a, b in pairwise(panel.ticks)}
    parts = [
        f"{curve.label}: " + listed((f"{significant(p.interval.value)} at {p.x:,}" for p in curve.points), most=12)
        for curve in curves
    ]
    parts += [f"{_WHOLE}: {significant(panel.whole.interval.value)}"] if panel.whole else []
    kind = "line chart" if gaps else "dots"
    return f"{panel.title}: {kind}, {panel.y_label} by {panel.x_label}. {'; '.join(parts)}."
