"""How far cells are from the machine's limits: FLOP/s against arithmetic intensity, below the roofs."""

import math
from collections.abc import Mapping, Sequence

from harness.analysis.limits import CellRate, Roof, roofs_of
from harness.report.figures.artists import Axes, Figure, Line2D, NullLocator
from harness.report.figures.layout import log_ticks
from harness.report.figures.looks import Look, looks
from harness.report.figures.svg import DASHES, MUTED, PAPER, Picture, picture, style
from harness.report.limits import flops, rate_rows
from harness.report.words.text import OWN_INTERVAL, listed, share, significant
from harness.spec.axes import NO_STRATEGY
from harness.visible import printable

_BESIDE = 4.0
"""How far the axes go beyond what is drawn, as a factor."""
_APART = 0.04


def roofline_figure(rates: Sequence[CellRate], name: str) -> Picture | None:
    """Every cell of `rates`; None unless a roof is known."""
    roofs = roofs_of(rates)
    if not roofs:
        return None
    strategies = list(dict.fromkeys(_strategy(rate) for rate in rates))
    by_strategy = dict(zip(strategies, looks(strategies), strict=True))
    with style():
        rows = -(-(len(roofs) + len(strategies)) // 3)
        figure = Figure(figsize=(8.2, 3.8 + 0.26 * rows), layout="constrained")
        axes = figure.subplots()
        _draw_roofs(axes, rates, roofs)
        _draw_cells(axes, rates, by_strategy)
        _set_axes(axes, rates, roofs)
        figure.legend(handles=_keys(roofs, by_strategy), loc="outside lower center", ncols=3, fontsize=9)
    title, words = "How far from the limit", _describe(rates, roofs)
    return picture(figure, name, title, words, _caption(rates), rate_rows(rates))


def _strategy(rate: CellRate) -> str:
    return str(rate.cell.trials.cell.get("strategy") or NO_STRATEGY)


def _edges(rates: Sequence[CellRate], roofs: Sequence[Roof]) -> tuple[float, float]:
    """Where the axis of intensities begins and ends: the cells and the ridges of the roofs are within."""
    found = [rate.intensity for rate in rates] + [roof.compute / roof.memory for roof in roofs]
    return min(found) / _BESIDE, max(found) * _BESIDE


def _draw_roofs(axes: Axes, rates: Sequence[CellRate], roofs: Sequence[Roof]) -> None:
    low, high = _edges(rates, roofs)
    for look, roof in enumerate(roofs):
        xs = [low, roof.compute / roof.memory, high]
        axes.plot(xs, [roof.at(x) for x in xs], color=MUTED, linestyle=DASHES[look % len(DASHES)], linewidth=1.3)


def _draw_cells(axes: Axes, rates: Sequence[CellRate], by_strategy: Mapping[str, Look]) -> None:
    places = list(by_strategy)
    for rate in rates:
        (colour, marker, _), of = by_strategy[_strategy(rate)], rate.rate
        # a little to each side: strategies do the same work, so that their cells would lie on each other
        at = rate.intensity * math.exp(_APART * (places.index(_strategy(rate)) - (len(places) - 1) / 2))
        if of.low is not None and of.high is not None:
            axes.plot([at, at], [of.low, of.high], color=colour, linewidth=1.2)
        face = PAPER if rate.cell.trials.unproved else colour
        axes.plot([at], [of.value], color=colour, marker=marker, markerfacecolor=face)


def _set_axes(axes: Axes, rates: Sequence[CellRate], roofs: Sequence[Roof]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    xs, lowest = _edges(rates, roofs), min(rate.rate.value for rate in rates)
    ys = lowest / _BESIDE, 2 * max(roof.compute for roof in roofs)
    axes.set_xlim(*xs)
    axes.set_ylim(*ys)
    axes.set_xticks(log_ticks(*xs), [significant(tick, 1) for tick in log_ticks(*xs)])
    axes.set_yticks(log_ticks(*ys), [flops(tick, 1) for tick in log_ticks(*ys)])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("arithmetic intensity: FLOP a byte of the step's products and convolutions")
    axes.grid(axis="y")


def _keys(roofs: Sequence[Roof], by_strategy: Mapping[str, Look]) -> list[Line2D]:
    lines = [
        Line2D([], [], color=MUTED, linestyle=DASHES[look % len(DASHES)], label=_words(roof))
        for look, roof in enumerate(roofs)
    ]
    dots = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle="none", label=printable(strategy))
        for strategy, look in by_strategy.items()
    ]
    return [*lines, *dots]


def _words(roof: Roof) -> str:
    return f"limit of {roof.place}, {roof.numbers}"


def _caption(rates: Sequence[CellRate]) -> str:
    parts = [
        "A cell is to be held against the roof of the processors that it keeps busy: flat where their matrix products "
        f"are the limit, slanted where memory is. Error bars are {OWN_INTERVAL}."
    ]
    if len({_strategy(rate) for rate in rates}) > 1:
        parts.append("Marks of the same work are set a little apart, or they would lie on each other.")
    if any(rate.cell.trials.unproved for rate in rates):
        parts.append("A hollow mark is unproved: measured, but a fault could have gone unseen.")
    return " ".join(parts)


def _describe(rates: Sequence[CellRate], roofs: Sequence[Roof]) -> str:
    lines = [
        f"{_words(roof)}: {flops(roof.compute)} from {significant(roof.compute / roof.memory)} FLOP a byte on, below "
        f"that {significant(roof.memory / 1e9)} GB/s"
        for roof in roofs
    ]
    dots = [
        f"{printable(rate.cell.label)}: {flops(rate.rate.value)} at {significant(rate.intensity)} FLOP a byte"
        + ("" if rate.of_roof is None else f", {share(rate.of_roof)} of its roof")
        for rate in rates
    ]
    return f"Roofline of FLOP/s by arithmetic intensity. {'; '.join(lines)}. {listed(dots, most=30)}."
