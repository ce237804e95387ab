"""Efficiency and throughput against the rate of an emulated network."""

import math
from collections.abc import Callable, Sequence

from harness.analysis import Interval, WorkloadSummary
from harness.analysis.network import NetworkCurve, NetworkPoint, network_curves
from harness.report.export.rows import ExportRow, interval_row
from harness.report.figures.artists import Axes, Figure, Line2D, NullLocator, StrMethodFormatter
from harness.report.figures.layout import NAME_LETTERS
from harness.report.figures.looks import Look, looks
from harness.report.figures.svg import MUTED, Picture, picture, style
from harness.report.words.text import OWN_INTERVAL, listed, names_apart, shortened, significant
from harness.spec.network import Network
from harness.spec.quantity import EXAMPLES, Quantity
from harness.spec.work import quantity_of
from harness.visible import plural

_MOST_CURVES = 8
_BESIDE = 4.0
"""How far beyond the highest rate, as a factor, what has no rate is drawn; and once more the loopback."""

PointValue = Callable[[NetworkPoint], Interval | None]


def network_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """Both against the rate, on a logarithmic axis; None unless something was measured at two rates."""
    every = [curve for curve in network_curves(summary) if len(curve.points) > 1]
    curves = every[:_MOST_CURVES]
    if not curves:
        return None
    panels = [panel for panel in (_EFFICIENCY, _THROUGHPUT) if _has(curves, panel[1])]
    places = _places(curves)
    expected = any(point.expected_step_s for curve in curves for point in curve.points)
    with style():
        legend_rows = -(-(len(curves) + expected) // 2)
        size = (9.4 if len(panels) > 1 else 6.4, 3.3 + 0.26 * legend_rows)
        figure = Figure(figsize=size, layout="constrained")
        for axes, (label, value) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, curves, places, value)
            axes.set_ylabel(_quantity(curves).worded(label))
        handles = _legend(curves, expected)
        figure.legend(handles=handles, loc="outside lower center", ncols=min(2, len(handles)), fontsize=9)
    return picture(
        figure,
        name,
        "Efficiency and throughput against the network's rate",
        _describe(curves),
        _caption(every, len(curves)),
        _rows(every),
    )


def _rows(curves: Sequence[NetworkCurve]) -> list[ExportRow]:
    points = [(curve, point) for curve in curves for point in (*curve.points, curve.loopback) if point is not None]
    return [
        {
            "cell_id": point.summary.cell_id,
            "curve": curve.label,
            "network": "none" if point.network is None else point.network.text,
            **interval_row(point.summary.trials.cell.work.quantity.throughput_key, point.throughput),
            **interval_row("efficiency", point.efficiency),
            "step_s": point.step_s,
            "expected_step_s": point.expected_step_s,
        }
        for curve, point in points
    ]


def _share(point: NetworkPoint) -> Interval | None:
    return None if point.efficiency is None else point.efficiency.scaled(100)


def _throughput(point: NetworkPoint) -> Interval | None:
    return point.throughput


_EFFICIENCY: tuple[str, PointValue] = ("% of the base case", _share)
_THROUGHPUT: tuple[str, PointValue] = (EXAMPLES.unit, _throughput)


def _quantity(curves: Sequence[NetworkCurve]) -> Quantity:
    return quantity_of(point.summary.trials.cell for curve in curves for point in curve.points)


def _has(curves: Sequence[NetworkCurve], value: PointValue) -> bool:
    return any(value(point) is not None for curve in curves for point in curve.points)


def _places(curves: Sequence[NetworkCurve]) -> dict[str, float]:
    """Where each rate is on the axis, by its tick's text; without a rate, beside the highest."""
    rates = {point.network.rate for curve in curves for point in curve.points if point.network and point.network.rate}
    places = {_tick(rate): float(rate) for rate in sorted(rates)}
    beside = max(places.values(), default=1e9)
    if any(point.network and point.network.rate is None for curve in curves for point in curve.points):
        beside *= _BESIDE
        places[_tick(None)] = beside
    if any(curve.loopback for curve in curves):
        places["none"] = beside * _BESIDE
    return places


def _tick(rate: int | None) -> str:
    """`100mbit`, as it is asked for."""
    return "unshaped" if rate is None else Network(rate=rate).text.removeprefix("rate=")


def _place(point: NetworkPoint, places: dict[str, float]) -> float:
    return places["none" if point.network is None else _tick(point.network.rate)]


def _draw(axes: Axes, curves: Sequence[NetworkCurve], places: dict[str, float], value: PointValue) -> None:
    axes.set_xscale("log")
    for number, (curve, look) in enumerate(zip(curves, _looks(curves), strict=True)):
        # a little to each side, so that bars at the same rate can be told apart
        shift = math.exp(0.05 * (number - (len(curves) - 1) / 2))
        drawn = [(shift * _place(point, places), point, found) for point in curve.points if (found := value(point))]
        _draw_curve(axes, drawn, look, joined=True)
        if curve.loopback is not None and (alone := value(curve.loopback)) is not None:
            _draw_curve(axes, [(shift * places["none"], curve.loopback, alone)], look, joined=False)
        line = [
            (x, found.value * point.expected_over_measured)
            for x, point, found in drawn
            if point.expected_over_measured is not None
        ]
        if line:
            axes.plot(*zip(*line, strict=True), color=MUTED, linestyle="--", linewidth=1.1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xticks(list(places.values()), list(places))
    if len(places) > 4:
        for tick in axes.get_xticklabels():
            tick.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("rate of each host's link")
    axes.grid(axis="y")


def _looks(curves: Sequence[NetworkCurve]) -> list[Look]:
    return looks([str(curve.points[0].summary.trials.cell.get("strategy")) for curve in curves])


def _draw_curve(axes: Axes, drawn: Sequence[tuple[float, NetworkPoint, Interval]], look: Look, *, joined: bool) -> None:
    colour, marker, _ = look
    line = "-" if joined else "none"
    axes.plot(
        [x for x, _, _ in drawn], [found.value for _, _, found in drawn], color=colour, marker=marker, linestyle=line
    )
    for x, _, found in drawn:
        if found.low is not None and found.high is not None:
            axes.plot([x, x], [found.low, found.high], color=colour, linewidth=1.4)


def _legend(curves: Sequence[NetworkCurve], expected: bool) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, label=label)
        for look, label in zip(
            _looks(curves), names_apart([curve.label for curve in curves], NAME_LETTERS), strict=True
        )
    ]
    if expected:
        handles.append(Line2D([], [], color=MUTED, linestyle="--", label="expected from the ring's cost"))
    return handles


def _caption(curves: Sequence[NetworkCurve], drawn: int) -> str:
    has_share = _has(curves, _share)
    parts = [_found(curves)]
    share = (
        "the share of what as many no-strategy base cases would do (resource-bounded where replicas share processors)"
    )
    unit = _quantity(curves).unit
    parts.append(f"Left, {share}; right, {unit}." if has_share else f"No base case was measured: {unit} only.")
    parts.append(
        "Error bars are paired intervals." if has_share else f"Error bars are of each cell alone, {OWN_INTERVAL}."
    )
    unproved = [f"{curve.label} at {_where(p)}" for curve in curves for p in curve.points if p.summary.trials.unproved]
    if unproved:
        parts.append(f"Unproved, so that a fault could have gone unseen: {listed(unproved)}.")
    if any(point.expected_step_s for curve in curves for point in curve.points):
        parts.append(
            "Dashed: the step on the fastest network plus the difference in a ring's round trips and in the time of "
            "its bytes, as both were measured; what is clearly above it hides communication behind computing."
        )
    networks = [point.network for curve in curves for point in curve.points]
    if any(network is not None and network.rate is None for network in networks):
        parts.append("'unshaped' is as fast as this machine moves frames.")
    if any(curve.loopback for curve in curves):
        parts.append("'none' is the loopback, without hosts.")
    if len(curves) > drawn:
        parts.append(f"The first {drawn} of {len(curves)} curves are drawn; the table and the CSV have all.")
    return " ".join(parts)


def _found(curves: Sequence[NetworkCurve]) -> str:
    """What the slowest network costs against the fastest, of the curve that it costs most and of that which least."""
    kept = [(curve.points[0].throughput.value / curve.points[-1].throughput.value, curve) for curve in curves]
    kept.sort(key=lambda pair: pair[0])
    words = [
        f"{shortened(curve.label)} has {significant(100 * value)} % of its throughput at "
        f"{_where(curve.points[-1])} left at {_where(curve.points[0])}"
        for value, curve in (kept[0], kept[-1])
    ]
    if len(curves) == 1:
        return f"{words[0]}."
    return f"Of {plural(len(curves), 'curve')} the one that a slow network costs most: {words[0]}; least: {words[1]}."


def _where(point: NetworkPoint) -> str:
    return "none" if point.network is None else _tick(point.network.rate)


def _describe(curves: Sequence[NetworkCurve]) -> str:
    parts = []
    for curve in curves:
        values = listed((_words(point) for point in curve.points), most=12)
        parts.append(f"{curve.label}: {values}")
    return f"Line chart of throughput and efficiency by the network's rate. {'; '.join(parts)}."


def _words(point: NetworkPoint) -> str:
    share = "" if point.efficiency is None else f" and {significant(100 * point.efficiency.value)} %"
    unit = point.summary.trials.cell.work.quantity.unit
    return f"{significant(point.throughput.value)} {unit}{share} at {_where(point)}"
