"""How long a step takes: its distribution over windows, for each cell and for each worker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis import WorkloadSummary
from harness.analysis.workers import Alone, CellTimes, StepTimes, WorkerTimes
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Axes, Line2D
from harness.report.figures.layout import bars, round_ticks, row_axes, x_axis
from harness.report.figures.svg import MUTED, SERIES, Picture, picture, style
from harness.report.words.text import NOT_JUDGED, listed, ratio, seconds, share_of, shortened, significant
from harness.visible import plural

MOST = 40
_SPREAD = 3.0
"""Above this ratio of largest to smallest step time the axis is logarithmic: no cell may be a point at its edge."""

_TAIL = 1.01
"""As many times the median, from which the 95th percentile of windows is a tail."""


@dataclass(frozen=True)
class _Line:
    """One row of the figure."""

    label: str
    times: StepTimes
    alone_s: float | None = None
    """Of a worker: forward and backward without the reduction."""


def steps_figure(summary: WorkloadSummary, times: dict[str, CellTimes], name: str) -> Picture | None:
    """A row for each measured cell, the fastest on top; None when there is no window."""
    cells = [cell for cell in (*summary.ranking, *summary.unranked) if cell.cell_id in times]
    if not cells:
        return None
    lines = [_Line(shortened(cell.label), times[cell.cell_id].times) for cell in cells]
    rows = [{"cell_id": cell.cell_id, "cell": cell.label, **_row(times[cell.cell_id].times)} for cell in cells]
    worst = max(lines, key=lambda line: line.times.p95_s / line.times.p50_s)
    tail = worst.times.p95_s / worst.times.p50_s
    found = (
        f"The longest tail is {worst.label}'s: 5 % of its windows take more than {significant(tail)} times the median."
    )
    if tail < _TAIL:
        found = "No cell has a tail: 95 % of each cell's windows take less than 1 % more than their median."
    caption = f"{found} {_HOW}"
    if min(line.times.windows for line in lines) < 100:
        few, many = min(line.times.windows for line in lines), max(line.times.windows for line in lines)
        count = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        caption += f" With {count} windows a cell the 99th percentile is close to the largest."
    return _draw(lines, name, "Step time, by cell", caption, rows)


def workers_figure(summary: WorkloadSummary, times: dict[str, CellTimes], name: str) -> Picture | None:
    """A row for each worker of each cell that has several; None where no cell has."""
    measured = (*summary.ranking, *summary.unranked)
    cells = [cell for cell in measured if cell.cell_id in times and times[cell.cell_id].workers]
    lines, rows, late = [], [], []
    for cell in cells:
        for one in times[cell.cell_id].workers:
            label = f"{shortened(cell.label)}, worker {one.worker}"
            lines.append(_Line(label, one.times, one.alone.seconds if one.alone else None))
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "cell": cell.label,
                    "worker": one.worker,
                    **_row(one.times),
                    "last_share": one.last_share,
                    "behind_fastest": one.behind,
                    **_row_alone(one.alone),
                    "straggles": one.straggles if summary.judged else None,
                }
            )
            if one.straggles and summary.judged:
                late.append(f"{label} ({_how_late(one)})")
    if not lines:
        return None
    found = _found(late, all(line.alone_s is not None for line in lines)) if summary.judged else NOT_JUDGED
    caption = f"{found} {_HOW}"
    return _draw(lines, name, "Step time, by worker", caption, rows)


def _how_late(worker: WorkerTimes) -> str:
    """Why it is called a straggler, in words."""
    words = []
    if worker.slower and worker.alone is not None:
        words.append(
            f"its forward and backward alone take {ratio(worker.alone.against_fastest)} as long as the fastest's"
        )
    if worker.late:
        words.append(f"{share_of(worker.behind)} behind the fastest, last in {share_of(worker.last_share)}")
    return "; ".join(words)


def _found(late: Sequence[str], alone: bool) -> str:
    """What the figure shows of stragglers, and what it cannot."""
    waits = "Workers in lock-step wait for one another within a step, so windows show no more than the lag at their end"
    none = "No worker is both more than 2 % behind at the end of its windows and last in most of them."
    if alone:
        none = "No worker's own forward and backward are shown to take more than 2 % longer than the fastest's."
        waits += (
            "; what each computes is the diamond: a step's forward and backward without the reduction, timed after "
            "the last window"
        )
    return f"{f'Stragglers: {listed(late, most=6)}.' if late else none} {waits}."


def _row_alone(alone: Alone | None) -> ExportRow:
    against = None if alone is None else alone.against_fastest
    return {
        "alone_s": None if alone is None else alone.seconds,
        "alone_against_fastest": None if against is None else against.value,
        "alone_against_fastest_low": None if against is None else against.low,
        "alone_against_fastest_high": None if against is None else against.high,
    }


_HOW = (
    "Line: from the smallest to the largest of the measured windows, each ÷ its steps. Dot: median, bar: 95th, cross: "
    "99th percentile, each the median over trials."
)


def _row(times: StepTimes) -> ExportRow:
    return {
        "smallest_s": times.smallest_s,
        "p50_s": times.p50_s,
        "p95_s": times.p95_s,
        "p99_s": times.p99_s,
        "largest_s": times.largest_s,
        "windows": times.windows,
    }


def _draw(lines: Sequence[_Line], name: str, title: str, caption: str, rows: Sequence[ExportRow]) -> Picture:
    shown = lines[:MOST]
    with style():
        names = {row: line.label for row, line in enumerate(shown)}
        keys = _keys(alone=any(line.alone_s is not None for line in shown))
        figure, (axes,) = row_axes(names, len(names), width=8.2, row=0.24, keys=keys, columns=len(keys))
        _draw_lines(axes, shown)
        _set_scale(axes, shown)
    if len(lines) > len(shown):
        caption += f" The first {len(shown)} of {len(lines)} are drawn, those of the fastest cells; the CSV has all."
    return picture(figure, name, title, _describe(shown), caption, rows)


def _keys(*, alone: bool) -> list[Line2D]:
    keys = [
        Line2D([], [], label="median", **_MEDIAN),
        Line2D([], [], label="95th", **_P95),
        Line2D([], [], label="99th percentile", **_P99),
        Line2D([], [], color=MUTED, label="smallest to largest"),
    ]
    return [*keys, Line2D([], [], label="forward and backward alone", **_ALONE)] if alone else keys


_MEDIAN: dict[str, Any] = {"color": SERIES[0], "marker": "o", "markersize": 5, "linestyle": "none"}
_P95: dict[str, Any] = {
    "color": SERIES[1],
    "marker": "|",
    "markersize": 10,
    "markeredgewidth": 2,
    "linestyle": "none",
}
_P99: dict[str, Any] = {
    "color": SERIES[2],
    "marker": "x",
    "markersize": 5.5,
    "markeredgewidth": 1.4,
    "linestyle": "none",
}
_ALONE: dict[str, Any] = {"color": SERIES[3], "marker": "D", "markersize": 5, "linestyle": "none"}


def _draw_lines(axes: Axes, lines: Sequence[_Line]) -> None:
    """All rows' medians are one drawn thing, and so on: a fifth of the time of a thing each."""
    scale, rows, times = 1e3, range(len(lines)), [line.times for line in lines]
    alone = [(row, line.alone_s) for row, line in enumerate(lines) if line.alone_s is not None]
    axes.plot([scale * taken for _, taken in alone], [row for row, _ in alone], **_ALONE)
    bars(axes, rows, [(scale * of.smallest_s, scale * of.largest_s) for of in times], color=MUTED, linewidth=1.3)
    axes.plot([scale * of.p95_s for of in times], rows, **_P95)
    axes.plot([scale * of.p99_s for of in times], rows, **_P99)
    axes.plot([scale * of.p50_s for of in times], rows, **_MEDIAN)


def _set_scale(axes: Axes, lines: Sequence[_Line]) -> None:
    alone = [line.alone_s for line in lines if line.alone_s is not None]
    low = min([line.times.smallest_s for line in lines] + alone)
    high = max([line.times.largest_s for line in lines] + alone)
    if low > 0 and high > _SPREAD * low:
        axes.set_xscale("log")
        ticks = _round_ticks(1e3 * low, 1e3 * high)
        words, label = [significant(tick, 2) for tick in ticks], "milliseconds a step (logarithmic)"
    else:
        ticks, words = round_ticks(*axes.get_xlim(), most=6)
        label = "milliseconds a step; the axis need not start at 0"
    # its limits are those that matplotlib found: ticks are drawn within them
    axes.set_xlim(*axes.get_xlim())
    x_axis(axes, ticks, words, label)


def _round_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten within the limits, at least two."""
    ticks = [factor * 10.0**power for power in range(-6, 10) for factor in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) > 1 else [low, high]


def _describe(lines: Sequence[_Line]) -> str:
    told = (
        f"{line.label}: median {seconds(line.times.p50_s)}, 95th percentile {seconds(line.times.p95_s)}, 99th "
        f"{seconds(line.times.p99_s)}, largest {seconds(line.times.largest_s)}"
        for line in lines[:12]
    )
    return f"{plural(len(lines), 'row')} of step times. {'; '.join(told)}."
