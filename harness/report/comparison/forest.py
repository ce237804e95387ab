"""The forest plot: each comparison as a point with its interval, over the bands of δ and ε."""

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

from harness.analysis import Interval
from harness.analysis.comparison import Comparison, Row
from harness.analysis.estimates.verdict import Margins
from harness.report.comparison.words import cpu_words, quantity_of_rows, row_words
from harness.report.export.rows import interval_row
from harness.report.figures.artists import Axes, Figure, Line2D, Patch
from harness.report.figures.layout import NAME_LETTERS
from harness.report.figures.svg import GRID, MUTED, PAPER, SERIES, Picture, picture, style
from harness.report.words.text import listed, names_apart
from harness.visible import plural, printable

MOST = 40
_TOLD = 10
"""Comparisons that the text alternative tells."""
_LOOKS = {
    "slower": ("v", SERIES[1], True),
    "faster": ("^", SERIES[2], True),
    "equivalent": ("o", SERIES[0], True),
    "undecided": ("o", MUTED, False),
}
"""Marker, colour, filled. Shape and filling tell them apart without colour."""
_OF_CPU = {"more": "slower", "less": "faster"}


def forest_figure(comparison: Comparison, name: str) -> Picture | None:
    """Points with intervals, the rows in the order of the table; None when no comparison is valid."""
    valid = [row for row in comparison.rows if row.verdicts.wall.ratio is not None]
    rows = valid[:MOST]
    if not rows:
        return None
    with style():
        with_cpu = any(row.verdicts.cpu is not None for row in rows)
        labels = _labels(rows)
        height = 0.42 if any("\n" in label for label in labels) else 0.3
        figure = Figure(figsize=(9.2, 1.35 + height * len(rows)), layout="constrained")
        panels = figure.subplots(1, 2 if with_cpu else 1, sharey=True, squeeze=False)[0]
        walls = [(row.verdicts.wall.verdict, row.verdicts.wall.ratio) for row in rows]
        _panel(panels[0], walls, comparison.margins, "throughput of B against A, %")
        if with_cpu:
            cpus = [(_cpu_look(row), row.verdicts.cpu_ratio) for row in rows]
            _panel(panels[1], cpus, comparison.margins, f"CPU time {quantity_of_rows(rows).each}, %")
        panels[0].set_yticks(range(len(rows)), labels)
        panels[0].set_ylim(len(rows) - 0.4, -0.6)
        seen = {row.verdicts.wall.verdict for row in rows} | {_cpu_look(row) for row in rows}
        figure.legend(handles=_legend(seen), loc="outside upper center", ncols=6, fontsize=9)
    caption = _caption(comparison, valid, len(rows), with_cpu)
    return picture(figure, name, "B against A", _describe(valid), caption, [_data(row) for row in valid])


def _caption(comparison: Comparison, rows: Sequence[Row], drawn: int, with_cpu: bool) -> str:
    """What the rows show, then how to read them."""
    place = "Left" if with_cpu else "Here"
    corrected = ", after the correction for many comparisons" if comparison.correction != "none" and rows[1:] else ""
    parts = [
        _found(rows),
        f"{place}: how much more (right of 0) or less throughput B has than A, with the 95 % interval. Inner band: "
        "within δ, a difference too small to count; outer band: within ε, the margin of equivalence. Slower or faster: "
        f"the whole interval lies outside the inner band{corrected}. Equivalent: the 90 % interval lies within the "
        "outer one.",
    ]
    if with_cpu:
        parts.append(f"Right: processor time {quantity_of_rows(rows).each} by the same rule, where right of 0 is more.")
    parts.append("An interval that runs out of the figure is in the table.")
    if len(rows) > drawn:
        parts.append(f"The first {drawn} of {len(rows)} are drawn; the table and the CSV have all.")
    return " ".join(parts)


def _found(rows: Sequence[Row]) -> str:
    """How many comparisons ended how, and which change is the largest."""
    most = max(rows, key=lambda row: abs(row.verdicts.wall.estimate.mean) if row.verdicts.wall.estimate else 0.0)
    named = f"{printable(most.name)}, {row_words(most)}"
    if len(rows) == 1:
        return f"{named}."
    counts: Counter[str] = Counter(row.verdicts.wall.verdict for row in rows)
    ended = listed(f"{counts[verdict]} {verdict}" for verdict in _LOOKS)
    return f"Of {plural(len(rows), 'comparison')} {ended}; the largest change is that of {named}."


def _data(row: Row) -> dict[str, object]:
    wall = row.verdicts.wall
    return {
        "cell": row.name,
        "verdict": wall.verdict,
        **interval_row("throughput_b_over_a", wall.ratio),
        "cpu_verdict": row.verdicts.cpu_verdict,
        **interval_row("cpu_b_over_a", row.verdicts.cpu_ratio),
    }


def _panel(axes: Axes, rows: Sequence[tuple[str, Interval | None]], margins: Margins, label: str) -> None:
    for margin, colour, opacity in ((margins.epsilon, GRID, 0.55), (margins.delta, MUTED, 0.3)):
        axes.axvspan(_percent(1 / (1 + margin)), 100 * margin, facecolor=colour, alpha=opacity, linewidth=0)
    axes.axvline(0, color=MUTED, linewidth=1)
    for place, (look, interval) in enumerate(rows):
        if interval is None:
            continue
        marker, colour, filled = _LOOKS[look]
        if interval.low is not None and interval.high is not None:
            ends = [_percent(interval.low), _percent(interval.high)]
            axes.plot(ends, [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        face = colour if filled else PAPER
        axes.plot(_percent(interval.value), place, marker=marker, color=colour, markerfacecolor=face, linestyle="none")
    axes.set_xlim(*_limits([interval for _, interval in rows if interval is not None], margins))
    axes.set_xlabel(label)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)


def _limits(intervals: Sequence[Interval], margins: Margins) -> tuple[float, float]:
    """All points and both bands; intervals as far as they do not squeeze everything else to a point."""
    band = 100 * margins.epsilon
    points = [_percent(interval.value) for interval in intervals]
    low, high = min([*points, -1.3 * band]), max([*points, 1.3 * band])
    room = 0.6 * (high - low)
    ends = [_percent(end) for interval in intervals for end in (interval.low, interval.high) if end is not None]
    left = max(min([*ends, low]), low - room, -100.0)
    right = min(max([*ends, high]), high + room)
    edge = 0.05 * (right - left)
    return left - edge, right + edge


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _cpu_look(row: Row) -> str:
    verdict = row.verdicts.cpu_verdict or "undecided"
    return _OF_CPU.get(verdict, verdict)


def _labels(rows: Sequence[Row]) -> list[str]:
    """Of each row the cell, and below it what changes, where the name says that."""
    lines = [row.name.split(": ", 1) for row in rows]
    columns = [names_apart(column, NAME_LETTERS) for column in zip_longest(*lines, fillvalue="")]
    return ["\n".join(filter(None, names)) for names in zip(*columns, strict=True)]


def _legend(seen: set[str]) -> list[Patch | Line2D]:
    words = {"slower": "slower (CPU: more)", "faster": "faster (CPU: less)"}
    marks = [
        Line2D(
            [],
            [],
            marker=marker,
            color=colour,
            markerfacecolor=colour if filled else PAPER,
            linestyle="none",
            label=words.get(verdict, verdict),
        )
        for verdict, (marker, colour, filled) in _LOOKS.items()
        if verdict in seen
    ]
    bands = [
        Patch(facecolor=MUTED, alpha=0.3, linewidth=0, label="within δ"),
        Patch(facecolor=GRID, alpha=0.55, linewidth=0, label="within ε"),
    ]
    return [*marks, *bands]


def _describe(rows: Sequence[Row]) -> str:
    parts = "; ".join(f"{row.name}: throughput {row_words(row)}, CPU {cpu_words(row)}" for row in rows[:_TOLD])
    more = f" The table has {len(rows) - _TOLD} more." if len(rows) > _TOLD else ""
    return f"Forest plot of {plural(len(rows), 'comparison')} over the bands of delta and epsilon. {parts}.{more}"
