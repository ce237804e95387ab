"""Time and bus bandwidth of a collective against the size of its buffer, with the line of latency and bandwidth."""

from collections.abc import Callable, Sequence

from harness.analysis import Interval
from harness.analysis.collectives import CollectiveFigures, CollectiveGroup, OpCurve
from harness.report.export.rows import ExportRow, interval_row
from harness.report.figures.artists import Axes, Figure, FuncFormatter, Line2D, NullFormatter, NullLocator
from harness.report.figures.svg import DASHES, MARKERS, MUTED, SERIES, Picture, picture, style
from harness.report.tables.collectives import group_title
from harness.report.words.text import OWN_INTERVAL, listed, seconds, significant
from harness.spec.collective import size_text
from harness.visible import printable

_MOST_CURVES = 8
_MOST_TICKS = 9
_MICRO, _GIGA = 1e-6, 1e9
FigureOf = Callable[[CollectiveFigures], Interval | None]


def collective_figure(group: CollectiveGroup, name: str) -> Picture | None:
    """Both on logarithmic axes; None unless some op was measured at two sizes."""
    every = [curve for curve in group.curves if len(curve.figures) > 1]
    curves = every[:_MOST_CURVES]
    if not curves:
        return None
    with style():
        figure = Figure(figsize=(9.4, 3.4 + 0.26 * (-(-len(curves) // 2))), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw(left, curves, _time_us, "µs a collective", lines=True)
        _draw(right, curves, _busbw_gb, "busbw, GB/s")
        handles = [
            Line2D([], [], color=_colour(look), marker=_marker(look), label=printable(curve.name))
            for look, curve in enumerate(curves)
        ]
        if any(curve.line is not None for curve in curves):
            handles.append(Line2D([], [], color=MUTED, linestyle="--", label="α + S/β"))
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9)
    title = f"Time and bandwidth by size: {group_title(group)}"
    return picture(figure, name, title, _describe(curves), _caption(len(every), len(curves)), _rows(every))


def _time_us(figures: CollectiveFigures) -> Interval | None:
    return None if figures.time_s is None else figures.time_s.scaled(1 / _MICRO)


def _busbw_gb(figures: CollectiveFigures) -> Interval | None:
    return None if figures.busbw is None else figures.busbw.scaled(1 / _GIGA)


def _draw(axes: Axes, curves: Sequence[OpCurve], value: FigureOf, label: str, *, lines: bool = False) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for look, curve in enumerate(curves):
        points = [(one.cell.size, found) for one in curve.figures if (found := value(one)) is not None]
        axes.plot(
            [size for size, _ in points],
            [found.value for _, found in points],
            color=_colour(look),
            marker=_marker(look),
            linestyle=DASHES[look // len(SERIES) % len(DASHES)],
        )
        for size, found in points:
            if found.low is not None and found.high is not None:
                axes.plot([size, size], [found.low, found.high], color=_colour(look), linewidth=1.4)
        line = curve.line if lines else None
        fitted = [] if line is None else [(size, line.at(size) / _MICRO) for size, _ in points if line.at(size) > 0]
        if fitted:
            axes.plot(*zip(*fitted, strict=True), color=MUTED, linestyle="--", linewidth=1.1)
    sizes = sorted({one.cell.size for curve in curves for one in curve.figures})
    shown = sizes[:: -(-len(sizes) // _MOST_TICKS)]
    axes.set_xticks(shown, [_bytes(size) for size in shown])
    for tick in axes.get_xticklabels():
        tick.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size of the buffer")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: significant(value, 1)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(label)
    axes.grid(axis="y")


def _colour(look: int) -> str:
    return SERIES[look % len(SERIES)]


def _marker(look: int) -> str:
    return MARKERS[look % len(MARKERS)]


def _bytes(size: int) -> str:
    return size_text(size, "B", " ")


def _caption(every: int, drawn: int) -> str:
    parts = [f"Left the time of one collective, right its bus bandwidth; error bars are {OWN_INTERVAL}."]
    parts.append("Dashed: latency and bandwidth, fitted to all sizes of an op; what leaves the line is in the table.")
    if every > drawn:
        parts.append(f"The first {drawn} of {every} ops are drawn; the table and the CSV have all.")
    return " ".join(parts)


def _describe(curves: Sequence[OpCurve]) -> str:
    parts = []
    for curve in curves:
        points = (
            f"{seconds(one.time_s.value)} and {significant(one.busbw.value / _GIGA)} GB/s at {_bytes(one.cell.size)}"
            for one in curve.figures
            if one.time_s is not None and one.busbw is not None
        )
        parts.append(f"{printable(curve.name)}: {listed(points, most=12)}")
    return f"Line chart of time and bus bandwidth by the size of the buffer. {'; '.join(parts)}."


def _rows(curves: Sequence[OpCurve]) -> list[ExportRow]:
    return [
        {
            "cell_id": one.summary.cell_id,
            "op": curve.name,
            "size_bytes": one.cell.size,
            **interval_row("time_s", one.time_s),
            **interval_row("algbw_bytes_per_s", one.algbw),
            **interval_row("busbw_bytes_per_s", one.busbw),
            "line_s": None if line is None else line.at(one.cell.size),
        }
        for curve in curves
        for line in (curve.line,)
        for one in curve.figures
    ]
