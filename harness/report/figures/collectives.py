"""Time and bus bandwidth of a collective against the size of its buffer, with the line of latency and bandwidth."""

from collections.abc import Callable, Sequence

from harness.analysis import Interval
from harness.analysis.collectives import CollectiveFigures, CollectiveGroup, OpCurve
from harness.analysis.latency import Piece
from harness.analysis.limits import BusLimit
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Axes, Figure, Line2D, NullLocator
from harness.report.figures.layout import log_ticks
from harness.report.figures.svg import DASHES, MARKERS, MUTED, SERIES, Picture, picture, style
from harness.report.tables.collectives import curve_rows, group_title
from harness.report.words.text import OWN_INTERVAL, listed, seconds, significant
from harness.spec.collective import size_text
from harness.visible import printable

_MOST_CURVES = 8
_MOST_TICKS = 9
_MICRO, _GIGA = 1e-6, 1e9
_OF_MEMORY = (
    " That is for reading every replica's buffer and writing the result once: buffers that stay in a cache, and sums "
    "in place, may be faster."
)
FigureOf = Callable[[CollectiveFigures], Interval | None]


def collective_figure(group: CollectiveGroup, name: str, limit: BusLimit | None = None) -> Picture | None:
    """Both on logarithmic axes, with what the bandwidth comes to at most; None unless some op was measured at two
    sizes."""
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
        if limit is not None:
            right.axhline(limit.bytes_per_s / _GIGA, color=MUTED, linestyle=":", linewidth=1.4)
            handles.append(Line2D([], [], color=MUTED, linestyle=":", label=f"limit: {limit.of}"))
        for axes in (left, right):
            ticks = log_ticks(*axes.get_ylim())
            axes.set_yticks(ticks, [significant(tick, 1) for tick in ticks])
            axes.yaxis.set_minor_locator(NullLocator())
        if any(curve.line is not None for curve in curves):
            words = "α + S/β, a line for each range of sizes" if _cut(curves) else "α + S/β"
            handles.append(Line2D([], [], color=MUTED, linestyle="--", label=words))
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9)
    title = f"Time and bandwidth by size: {group_title(group)}"
    text = _describe(curves) + (f" {_of_limit(limit)}" if limit is not None else "")
    return picture(figure, name, title, text, _caption(len(every), curves, limit), _rows(every, limit))


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
        for piece in curve.line.pieces if lines and curve.line is not None else ():
            _draw_piece(axes, piece)
    sizes = sorted({one.cell.size for curve in curves for one in curve.figures})
    shown = sizes[:: -(-len(sizes) // _MOST_TICKS)]
    axes.set_xticks(shown, [_bytes(size) for size in shown])
    for tick in axes.get_xticklabels():
        tick.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size of the buffer")
    axes.set_ylabel(label)
    axes.grid(axis="y")


def _draw_piece(axes: Axes, piece: Piece) -> None:
    """The line between its own sizes, so that two pieces do not meet; on a logarithmic axis nothing below 0."""
    fitted = [(of.size, piece.at(of.size) / _MICRO) for of in piece.residuals if piece.at(of.size) > 0]
    if fitted:
        axes.plot(*zip(*fitted, strict=True), color=MUTED, linestyle="--", linewidth=1.1)


def _cut(curves: Sequence[OpCurve]) -> bool:
    """Whether a line is in pieces."""
    return any(curve.line is not None and len(curve.line.pieces) > 1 for curve in curves)


def _colour(look: int) -> str:
    return SERIES[look % len(SERIES)]


def _marker(look: int) -> str:
    return MARKERS[look % len(MARKERS)]


def _bytes(size: int) -> str:
    return size_text(size, "B", " ")


def _of_limit(limit: BusLimit) -> str:
    return f"Dotted: at most {significant(limit.bytes_per_s / _GIGA)} GB/s, what {limit.of} can do."


def _caption(every: int, curves: Sequence[OpCurve], limit: BusLimit | None) -> str:
    parts = [f"Left the time of one collective, right its bus bandwidth; error bars are {OWN_INTERVAL}."]
    to = "the sizes of an op, in ranges where one line does not hold" if _cut(curves) else "all sizes of an op"
    but = ", but for those that the table names" if any(curve.unfitted for curve in curves) else ""
    parts.append(f"Dashed: latency and bandwidth, fitted to {to}{but}; what leaves the line is in the table.")
    if limit is not None:
        parts.append(_of_limit(limit) + (_OF_MEMORY if limit.of == "memory" else ""))
    if every > len(curves):
        parts.append(f"The first {len(curves)} of {every} ops are drawn; the table and the CSV have all.")
    return " ".join(parts)


def _describe(curves: Sequence[OpCurve]) -> str:
    parts = []
    for curve in curves:
        points = (
            f"{seconds(one.time_s.value)} and {significant(one.busbw.value / _GIGA)} GB/s at {_bytes(one.cell.size)}"
            for one in curve.figures
            if one.time_s is not None and one.busbw is not None
        )
        parts.append(f"{printable(curve.name)}: {listed(points, most=12)}{_ranges(curve)}")
    return f"Line chart of time and bus bandwidth by the size of the buffer. {'; '.join(parts)}."


def _ranges(curve: OpCurve) -> str:
    """Of a line in pieces, in words; nothing of one line."""
    pieces = () if curve.line is None else curve.line.pieces
    ranges = (f"{_bytes(piece.smallest)} to {_bytes(piece.largest)}" for piece in pieces)
    return f", fitted in {len(pieces)} ranges: {listed(ranges)}" if len(pieces) > 1 else ""


def _rows(curves: Sequence[OpCurve], limit: BusLimit | None) -> list[ExportRow]:
    most = None if limit is None else limit.bytes_per_s
    return [{**row, "busbw_limit_bytes_per_s": most} for curve in curves for row in curve_rows(curve)]
