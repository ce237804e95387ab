"""A small figure for one series: each run with its interval, the levels, and where they change."""

import itertools
import math
import statistics

from harness.analysis.history.series import Series
from harness.report.export.rows import ExportRow, interval_row
from harness.report.figures.artists import Figure
from harness.report.figures.svg import MUTED, SERIES, Picture, picture, style
from harness.report.history.words import change_percent
from harness.report.words.text import significant
from harness.visible import plural, printable


def history_figure(series: Series, slug: str, name: str) -> Picture | None:
    """Runs from left to right in their order; None of a single run. `slug` begins its ids, `name` is the series'."""
    points = series.points
    if len(points) < 2:
        return None
    with style():
        figure = Figure(figsize=(8.4, 2.1), layout="constrained")
        axes = figure.subplots()
        values = [point.value.value for point in points]
        for place, point in enumerate(points):
            if point.value.low is not None and point.value.high is not None:
                axes.plot(
                    [place, place], [point.value.low, point.value.high], color=SERIES[0], linewidth=1.0, alpha=0.6
                )
        axes.plot(range(len(points)), values, marker="o", markersize=4, linestyle="none", color=SERIES[0])
        edges = [0, *(change.index for change in series.changes), len(points)]
        for start, end in itertools.pairwise(edges):
            level = statistics.geometric_mean(values[start:end])
            axes.plot([start - 0.4, end - 0.6], [level, level], color=MUTED, linewidth=1.2)
        for change in series.changes:
            axes.axvline(change.index - 0.5, color=SERIES[1], linewidth=1.4, linestyle=(0, (4, 2)))
            axes.annotate(
                change_percent(change).partition(" [")[0],
                (change.index - 0.5, 1),
                xycoords=("data", "axes fraction"),
                xytext=(4, -10),
                textcoords="offset points",
                color=SERIES[1],
                fontsize=9,
            )
        axes.set_ylim(*_limits(series))
        axes.set_xlim(-0.7, len(points) - 0.3)
        ticks = sorted({0, len(points) - 1, *(change.index for change in series.changes)})
        axes.set_xticks(ticks, [points[tick].created_utc[:10] for tick in ticks])
        axes.set_ylabel("× no strategy" if series.measure == "speed-up" else series.cell.work.quantity.unit)
        axes.grid(axis="y")
    return picture(figure, slug, f"Runs and levels of {name}", _describe(series), _caption(series), _rows(series, name))


def _rows(series: Series, name: str) -> list[ExportRow]:
    starts = {change.index for change in series.changes}
    return [
        {
            "series": name,
            "machine": series.machine,
            "cell_id": series.cell.cell_id,
            "run_id": point.run_id,
            "created_utc": point.created_utc,
            "measure": series.measure,
            **interval_row("value", point.value),
            "trials": point.trials,
            "level_changes": place in starts,
        }
        for place, point in enumerate(series.points)
    ]


def _limits(series: Series) -> tuple[float, float]:
    """All points, and their intervals as far as they do not squeeze the points to a line."""
    values = [point.value.value for point in series.points]
    low, high = min(values), max(values)
    room = max(high - low, 0.01 * high)
    lows = [point.value.low for point in series.points if point.value.low is not None]
    highs = [point.value.high for point in series.points if point.value.high is not None]
    return max(min([low, *lows]), low - room) - 0.05 * room, min(max([high, *highs]), high + room) + 0.25 * room


def _caption(series: Series) -> str:
    count = plural(len(series.points), "run")
    spread = _scatter(series)
    about = f" Runs of one level scatter by {significant(100 * spread, 2)} %." if spread is not None else ""
    about += " The axis does not start at 0." if _limits(series)[0] > 0 else ""
    known = sum(point.value.known for point in series.points)
    which = "each" if known == len(series.points) else f"{known} of them"
    own = (
        f", {which} with its own 95 % interval, of its own minutes"
        if known
        else ", of one trial each, without intervals"
    )
    if not series.changes:
        found = "No change of level was found" if series.long_enough else "Too few runs to tell a change of level"
        return f"{count}{own}. {found}.{about}"
    sizes = ", ".join(change_percent(change) for change in series.changes)
    lines = f"lines are levels, dashed where they change: {sizes}"
    return f"{count}{own}; {lines}.{about}"


def _scatter(series: Series) -> float | None:
    edges = [0, *(change.index for change in series.changes), len(series.points)]
    left = []
    for start, end in itertools.pairwise(edges):
        logs = [math.log(point.value.value) for point in series.points[start:end]]
        mean = statistics.fmean(logs)
        left += [value - mean for value in logs]
    freedom = len(left) - (len(edges) - 1)
    return math.sqrt(math.fsum(value * value for value in left) / freedom) if freedom > 0 else None


def _describe(series: Series) -> str:
    first, last = series.points[0].value.value, series.points[-1].value.value
    unit = "times no strategy" if series.measure == "speed-up" else f"{series.cell.work.quantity.many} per second"
    changes = "; ".join(f"changes by {change_percent(c)} at run {printable(c.after)}" for c in series.changes)
    return (
        f"{len(series.points)} runs, from {significant(first)} to {significant(last)} {unit}; "
        f"{changes or 'no change of level found'}."
    )
