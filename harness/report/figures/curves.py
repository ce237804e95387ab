"""Throughput and efficiency against the number of replicas, a panel for each batch size and loop."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from harness.analysis import CellSummary, Interval, WorkloadSummary
from harness.analysis.scaling import family_key, on_curve
from harness.report.figures.svg import DASHES, MARKERS, MUTED, SERIES, Picture, picture, style
from harness.report.text import listed, shortened, significant

_COLUMNS = 3
_MOST_PANELS = 12
_WIDTHS = {1: 6.4, 2: 9.4, 3: 10.6}
"""Inches by number of panels side by side."""


@dataclass(frozen=True)
class Point:
    """One cell on a curve: n, its value with interval."""

    n: int
    interval: Interval


@dataclass(frozen=True)
class Curve:
    """One strategy and op within a panel."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """One batch size and loop."""

    title: str
    curves: tuple[Curve, ...]
    ideal: tuple[tuple[int, float], ...]
    bound: tuple[tuple[int, float], ...]
    counts: tuple[int, ...]
    floor: float
    """Where the value axis starts."""


Value = Callable[[CellSummary], Interval | None]


def throughput_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """Examples/s against replicas; None unless some strategy was measured at two replica counts."""
    panels = _panels(summary, _throughput_value(summary), throughput=True)
    if not panels:
        return None
    caption = (
        "Each point is the no-strategy base case times the cell's speed-up over it, so its error bar is the paired "
        "interval of that speed-up. Dashed: ideal, n × the base. Dotted: the bound min(n, processors) × the base."
    )
    return _draw(panels, name, "Throughput against replicas", "examples/s", caption)


def efficiency_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """Efficiency over the no-strategy base against replicas, resource-bounded where processors are shared."""
    shared = summary.answer.shared

    def value(cell: CellSummary) -> Interval | None:
        if cell.vs_none is not None:
            bounded = cell.vs_none.resource_efficiency if shared else cell.vs_none.efficiency
            return bounded.scaled(100)
        return Interval(100.0, None, None) if cell.trials.cell.strategy == "none" else None

    panels = _panels(summary, value, throughput=False)
    if not panels:
        return None
    caption = (
        "Share of the throughput that n copies of the no-strategy base case would have. 100 % is ideal. The axis need "
        "not start at 0."
    )
    if shared:
        caption = (
            "Resource-bounded efficiency: share of the throughput that min(n, processors) copies of the no-strategy "
            "base case would have. Replicas share processors here, so this shows what the strategy costs, not how "
            "the hardware scales. The axis need not start at 0."
        )
    title = "Resource-bounded efficiency against replicas" if shared else "Efficiency against replicas"
    return _draw(panels, name, title, "% of the base case", caption)


def _throughput_value(summary: WorkloadSummary) -> Value:
    by_id = {cell.cell_id: cell for cell in summary.cells}

    def value(cell: CellSummary) -> Interval | None:
        if cell.measured is None:
            return None
        base = by_id[cell.vs_none.base_id].measured if cell.vs_none is not None else None
        if cell.vs_none is None or base is None:
            alone = cell.measured.throughput
            return Interval(alone.value, None, None) if cell.trials.cell.strategy == "none" else alone
        return cell.vs_none.speed_up.scaled(base.throughput.value)

    return value


def _panels(summary: WorkloadSummary, value: Value, *, throughput: bool) -> list[Panel]:
    grouped: defaultdict[tuple[int, str], list[CellSummary]] = defaultdict(list)
    for cell in summary.cells:
        if cell.measured is not None:
            grouped[cell.trials.cell.batch_size, cell.trials.cell.loop].append(cell)
    several_loops = len({loop for _, loop in grouped}) > 1
    panels = []
    for (batch, loop), cells in grouped.items():
        curves = _curves(cells, value)
        if not any(len(curve.points) > 1 for curve in curves):
            continue
        scope = "global batch" if cells[0].trials.cell.batch_scope == "global" else "per-replica batch"
        title = f"{scope} {batch}" + (f", {loop} loop" if several_loops else "")
        counts = tuple(sorted({point.n for curve in curves for point in curve.points}))
        ideal, bound = _limits(cells, counts, throughput=throughput)
        lowest = min(point.interval.value for curve in curves for point in curve.points)
        floor = 0.0 if throughput else max(0.0, 10 * math.floor(lowest / 10 - 0.5))
        panels.append(Panel(title, curves, ideal, bound, counts, floor))
    return panels[:_MOST_PANELS]


def _curves(cells: Sequence[CellSummary], value: Value) -> tuple[Curve, ...]:
    curves = []
    for lead in _leads(cells):
        points = {}
        for cell in cells:
            interval = value(cell)
            if interval is not None and on_curve(cell.trials.cell, lead.trials.cell):
                points[cell.trials.cell.devices_in_sync] = Point(cell.trials.cell.devices_in_sync, interval)
        if points:
            curves.append(Curve(_curve_label(lead), tuple(points[n] for n in sorted(points))))
    return tuple(curves)


def _leads(cells: Sequence[CellSummary]) -> list[CellSummary]:
    """One cell for each curve: an op has its own, and serves for one replica only where nothing else does."""
    found: dict[tuple[object, ...], CellSummary] = {}
    reducing = {family_key(cell.trials.cell) for cell in cells if cell.trials.cell.devices_in_sync > 1}
    for cell in cells:
        of = cell.trials.cell
        if of.devices_in_sync > 1 or family_key(of) not in reducing:
            found.setdefault((family_key(of), of.cross_device_op, of.packing), cell)
    return list(found.values())


def _curve_label(cell: CellSummary) -> str:
    of = cell.trials.cell
    if of.strategy == "none":
        return "no strategy (base)"
    extra = [f"model:{of.model_shards}"] if of.model_shards > 1 else []
    extra += [of.cross_device_op] if of.cross_device_op != "auto" else []
    extra += [of.packing] if of.packing != "default" else []
    return shortened(", ".join([of.strategy, *extra]))


def _limits(
    cells: Sequence[CellSummary], counts: Sequence[int], *, throughput: bool
) -> tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]:
    """(the ideal line, the bound by processors); the bound is empty where it is the ideal line."""
    if not throughput:
        return tuple((n, 100.0) for n in counts), ()
    base = next((c.measured.throughput.value for c in cells if c.measured and c.trials.cell.strategy == "none"), None)
    if base is None:
        return (), ()
    ideal = tuple((n, n * base) for n in counts)
    physical = max((c.trials.physical_devices for c in cells if c.trials.cell.devices_in_sync > 1), default=0)
    if not physical or max(counts) <= physical:
        return ideal, ()
    corner = sorted({*counts, physical} - {n for n in (physical,) if n < min(counts)})
    return ideal, tuple((n, min(n, physical) * base) for n in corner)


def _draw(panels: Sequence[Panel], name: str, title: str, y_label: str, caption: str) -> Picture:
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    looks = {label: index for index, label in enumerate(labels)}
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    legend_rows = -(-(len(labels) + 2) // 3)
    with style():
        size = (_WIDTHS[columns], 3.1 * rows + 0.26 * legend_rows)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, panel in zip(grid, panels, strict=False):
            _draw_panel(axes, panel, looks)
        for axes in grid[len(panels) :]:
            axes.remove()
        for row in range(rows):
            grid[row * columns].set_ylabel(y_label)
        handles = _legend(looks, panels)
        figure.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)), fontsize=9)
    return picture(figure, name, title, _describe(panels, y_label), caption)


def _draw_panel(axes: Axes, panel: Panel, looks: Mapping[str, int]) -> None:
    spread = min((b - a for a, b in pairwise(panel.counts)), default=1) * 0.035
    if panel.ideal:
        axes.plot(*zip(*panel.ideal, strict=True), color=MUTED, linestyle="--", linewidth=1.1)
    if panel.bound:
        axes.plot(*zip(*panel.bound, strict=True), color=MUTED, linestyle=":", linewidth=1.6)
    for curve in panel.curves:
        look = looks[curve.label]
        # a little to each side, so that bars at the same n can be told apart
        shift = spread * (look - (len(looks) - 1) / 2)
        xs = [point.n + shift for point in curve.points]
        colour, marker = SERIES[look % len(SERIES)], MARKERS[look % len(MARKERS)]
        axes.plot(xs, [p.interval.value for p in curve.points], color=colour, marker=marker,
                  linestyle=DASHES[look // len(SERIES) % len(DASHES)])  # fmt: skip
        for x, point in zip(xs, curve.points, strict=True):
            if point.interval.low is not None and point.interval.high is not None:
                axes.plot([x, x], [point.interval.low, point.interval.high], color=colour, linewidth=1.4)
    values = [p.interval.value for curve in panel.curves for p in curve.points] + [y for _, y in panel.ideal]
    # the axis follows the points; an interval of two trials may run out of it
    top = 1.06 * max(values)
    axes.set_ylim(panel.floor, top + 0.04 * (top - panel.floor))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xticks(panel.counts if len(panel.counts) <= 8 else [])
    if len(panel.counts) > 8:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel("replicas")
    axes.grid(axis="y")


def _legend(looks: Mapping[str, int], panels: Sequence[Panel]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=SERIES[look % len(SERIES)], marker=MARKERS[look % len(MARKERS)], label=label)
        for label, look in looks.items()
    ]
    if any(panel.ideal for panel in panels):
        handles.append(Line2D([], [], color=MUTED, linestyle="--", label="ideal"))
    if any(panel.bound for panel in panels):
        handles.append(Line2D([], [], color=MUTED, linestyle=":", label="bound by processors"))
    return handles


def _describe(panels: Sequence[Panel], unit: str) -> str:
    parts = []
    for panel in panels:
        for curve in panel.curves:
            values = listed((f"{significant(p.interval.value)} at {p.n}" for p in curve.points), most=12)
            parts.append(f"{panel.title}, {curve.label}: {values}")
    return f"Line chart, {unit} by number of replicas. {'; '.join(parts)}."
