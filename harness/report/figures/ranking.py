"""The ranking: every ok cell as a dot with its interval, absolute and against the best."""

from collections.abc import Sequence

from harness.analysis import CellSummary, Interval, WorkloadSummary
from harness.analysis.pipelines import fed_models
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Axes, Figure
from harness.report.figures.layout import round_ticks, row_axes, whiskers, x_axis
from harness.report.figures.pipelines import pipelines_figure
from harness.report.figures.svg import MUTED, PAPER, SERIES, Picture, picture, style
from harness.report.words.headline import as_known, names_fastest
from harness.report.words.text import NOT_JUDGED, OWN_INTERVAL, shortened, significant
from harness.spec.work import quantity_of
from harness.visible import plural

MOST = 40
GLANCE = 8
"""Cells of the figure that stands beside the answer."""
_ROW = 0.27


def ranking_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """Dots with intervals, the fastest on top; None of fewer than two cells."""
    ranking = summary.ranking[:MOST]
    if len(ranking) < 2:
        return None
    left_out = len(summary.ranking) - len(ranking)
    cut = (
        f" The {len(ranking)} {as_known(summary, 'fastest')} of {len(summary.ranking)} are drawn; the table and the "
        "CSV have all."
        if left_out
        else ""
    )
    alike = ", to all cells alike" if summary.linked else ""
    told = _TOLD if summary.judged else ""
    how = _CAPTION.format(alike=alike, told=told) if _limited(ranking) else _UNLIMITED
    caption = f"{_found(summary)} {how}{cut}"
    return picture(_plot(ranking), name, "Ranking by throughput", _describe(ranking), caption, _rows(summary.ranking))


def glance_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """What stands beside the answer: of input pipelines what they give of what is taken, else the best cells."""
    return pipelines_figure(fed_models(summary), name) or _best_figure(summary, name)


def _best_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """The same of the best cell of each strategy and the next fastest; None where there is nothing to compare."""
    chosen = _at_a_glance(summary.ranking)
    if len(chosen) < 2:
        return None
    told = "A filled dot may be as fast, a hollow one is slower. " if summary.judged else ""
    caption = f"{told}Limits on the right hold for all together." if _limited(chosen) else ""
    every = "Every ranked cell" if summary.unranked else "Every cell"
    of_strategies = any(cell.trials.cell.get("strategy") for cell in chosen)
    best = as_known(summary, "The best of each strategy and the next fastest" if of_strategies else "The fastest")
    title = best if len(chosen) < len(summary.ranking) else every
    return picture(_plot(chosen), name, title, _describe(chosen), caption, _rows(chosen))


def _at_a_glance(ranking: Sequence[CellSummary]) -> list[CellSummary]:
    """In the ranking's order; no strategy on one device and on the whole machine count as two."""
    best: dict[object, CellSummary] = {}
    for cell in ranking:
        of = cell.trials.cell
        best.setdefault((getattr(of, "strategy", of.cell_id), cell.trials.all_cores), cell)
    first = list(dict.fromkeys(cell.cell_id for cell in (*best.values(), *ranking)))[:GLANCE]
    return [cell for cell in ranking if cell.cell_id in first]


def _plot(ranking: Sequence[CellSummary]) -> Figure:
    with style():
        comparing = any(cell.place is not None and cell.place.against_best is not None for cell in ranking)
        names = {row: cell.label for row, cell in enumerate(ranking)}
        figure, panels = row_axes(names, len(names), width=9.2, row=_ROW, panels=2 if comparing else 1)
        _absolute(panels[0], ranking)
        if comparing:
            _against_best(panels[1], ranking)
    return figure


def _found(summary: WorkloadSummary) -> str:
    """Between what the measured cells lie, and how many may be the fastest."""
    first, last = summary.ranking[0], summary.ranking[-1]
    assert first.measured is not None
    assert last.measured is not None
    factor = significant(first.measured.throughput.value / last.measured.throughput.value, 2)
    tied = len(summary.answer.tied_ids)
    told = (
        f"; {plural(tied, 'cell')} may be as fast as the first" if tied else "; the first is the fastest beyond doubt"
    )
    most, least = ("fastest", "slowest") if names_fastest(summary) else ("highest", "lowest")
    ends = f"From the {most} to the {least} of {plural(len(summary.ranking), 'cell')} it is a factor of {factor}"
    return f"{ends}{told}." if summary.judged else f"{ends}. {NOT_JUDGED}"


def _rows(ranking: Sequence[CellSummary]) -> list[ExportRow]:
    rows = []
    for cell in ranking:
        assert cell.measured is not None
        assert cell.place is not None
        throughput, against = cell.measured.throughput, cell.place.against_best
        rows.append(
            {
                "rank": cell.place.rank,
                "cell_id": cell.cell_id,
                "cell": cell.label,
                cell.trials.cell.work.quantity.throughput_key: throughput.value,
                "low": throughput.low,
                "high": throughput.high,
                "with_best": cell.place.with_best,
                "against_best": against.value if against else None,
                "against_best_low": against.low if against else None,
                "against_best_high": against.high if against else None,
                "trials_to_separate": cell.place.trials_to_separate,
            }
        )
    return rows


_CAPTION = (
    "Left: throughput of each cell on its own; in its interval is what the machine did between blocks{alike}. Right: "
    "the same cells relative to the fastest, which is what tells them apart{told}. Intervals on the right allow for "
    "the number of comparisons; one that runs out of the figure is in the table."
)
_UNLIMITED = "Left: throughput of each cell; right: relative to the fastest. Of so few trials there are no limits."
_TOLD = "; a filled dot cannot be told apart from the fastest, a hollow one is slower"


def _absolute(axes: Axes, ranking: Sequence[CellSummary]) -> None:
    measured = [cell.measured.throughput for cell in ranking if cell.measured is not None]
    _dots(axes, measured, [not _apart(cell) for cell in ranking])
    # two trials may give an interval a hundred times as wide as the ranking: it runs out of the figure
    widest = max(interval.high or interval.value for interval in measured)
    axes.set_xlim(0, 1.04 * min(widest, 1.6 * max(interval.value for interval in measured)))
    unit = quantity_of(cell.trials.cell for cell in ranking).unit
    told = f"{unit}, {OWN_INTERVAL}" if any(interval.known for interval in measured) else unit
    x_axis(axes, *round_ticks(*axes.get_xlim(), most=5), told)


def _against_best(axes: Axes, ranking: Sequence[CellSummary]) -> None:
    axes.axvline(100, color=MUTED, linewidth=1)
    best = Interval(100.0, None, None)
    shares = [
        cell.place.against_best.scaled(100) if cell.place is not None and cell.place.against_best is not None else best
        for cell in ranking
    ]
    _dots(axes, shares, [share is best or not _apart(cell) for share, cell in zip(shares, ranking, strict=True)])
    # one interval of two trials must not squeeze all others to a point: the axis follows the dots
    low, high = min(share.value for share in shares), max(share.value for share in shares)
    axes.set_xlim(max(0.0, low - 0.15 * (high - low) - 4), high + 0.12 * (high - low) + 4)
    told = "% of the fastest, 95 % limits" if _limited(ranking) else "% of the fastest"
    x_axis(axes, *round_ticks(*axes.get_xlim(), most=6), told)


def _dots(axes: Axes, intervals: Sequence[Interval], filled: Sequence[bool]) -> None:
    """A dot in each row over the line of its interval; all of one kind are one drawn thing."""
    whiskers(axes, enumerate(intervals), color=SERIES[0], linewidth=1.6)
    for full in (True, False):
        rows = [row for row, of in enumerate(filled) if of == full]
        if rows:
            axes.plot(
                [intervals[row].value for row in rows],
                rows,
                marker="o",
                color=SERIES[0],
                markerfacecolor=SERIES[0] if full else PAPER,
                linestyle="none",
            )


def _limited(ranking: Sequence[CellSummary]) -> bool:
    """Whether it is known of some cell how far from the fastest it may be."""
    against = (cell.place.against_best for cell in ranking if cell.place is not None)
    return any(of is not None and of.known for of in against)


def _apart(cell: CellSummary) -> bool:
    """Whether it is told apart from the fastest, which no cell is in a sweep that is not judged."""
    return cell.place is None or cell.place.with_best is False


def _describe(ranking: Sequence[CellSummary]) -> str:
    unit = quantity_of(cell.trials.cell for cell in ranking).unit
    lines = [
        f"{place}. {shortened(cell.label)}: {significant(cell.measured.throughput.value)} {unit}"
        for place, cell in enumerate(ranking[:10], start=1)
        if cell.measured is not None
    ]
    tied = sum(cell.place is not None and bool(cell.place.with_best) for cell in ranking) - 1
    told = f"{plural(tied, 'other cell')} cannot be told apart from the first." if tied > 0 else ""
    return f"Dot plot of {plural(len(ranking), 'cell')}, the highest first. {'; '.join(lines)}. {told}".strip()
