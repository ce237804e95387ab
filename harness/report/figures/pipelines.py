"""What each input gives of what its model takes: right of the line input is not the limit, left of it it is."""

from collections.abc import Sequence

from harness.analysis.pipelines import FedBy, FedModel
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Figure
from harness.report.figures.layout import row_axes, whiskers, x_axis
from harness.report.figures.svg import MUTED, PAPER, SERIES, Picture, picture, style
from harness.report.tables.pipelines import pipeline_row
from harness.report.words.text import significant
from harness.visible import plural

MOST = 40
_ROW = 0.27
_STEPS = (1, 2, 5)


def pipelines_figure(models: Sequence[FedModel], name: str) -> Picture | None:
    """A dot with its interval for each input, on a logarithmic axis; None where none was measured."""
    every = [(model, fed) for model in models for fed in model.inputs]
    drawn = every[:MOST]
    if not drawn:
        return None
    cut = f" The first {MOST} of {len(every)} are drawn; the CSV has all." if len(every) > MOST else ""
    caption = (
        "What the input gives by itself ÷ what the model takes from batches that wait on its device, with 95 % "
        "intervals. Left of 1 the model waits for its input; right of it, input is the limit once the model is so many "
        f"times as fast. A hollow dot cannot be told from 1.{cut}"
    )
    described = "; ".join(f"{fed.summary.label}: {significant(fed.headroom.value)}" for _, fed in drawn[:10])
    alt = f"Dot plot of {plural(len(drawn), 'input')} over what the model takes. {described}."
    return picture(_plot(drawn), name, "What the input gives of what the model takes", alt, caption, _rows(every))


def _plot(drawn: Sequence[tuple[FedModel, FedBy]]) -> Figure:
    with style():
        names = {row: fed.summary.label for row, (_, fed) in enumerate(drawn)}
        figure, [axes] = row_axes(names, len(names), width=9.2, row=_ROW)
        axes.set_xscale("log")
        axes.axvline(1, color=MUTED, linewidth=1)
        intervals = [fed.headroom for _, fed in drawn]
        whiskers(axes, enumerate(intervals), color=SERIES[0], linewidth=1.6)
        for row, (_, fed) in enumerate(drawn):
            face = SERIES[0] if fed.limit in ("later", "now") else PAPER
            axes.plot([fed.headroom.value], [row], marker="o", color=SERIES[0], markerfacecolor=face, linestyle="none")
        values = [1.0, *(interval.value for interval in intervals)]
        low, high = min(values) / 1.6, max(values) * 1.6
        axes.set_xlim(low, high)
        ticks = [tick for power in range(-9, 10) for step in _STEPS if low <= (tick := step * 10.0**power) <= high]
        shown = ticks if len(ticks) <= 8 else [tick for tick in ticks if f"{tick:.0e}"[0] == "1"]
        x_axis(axes, shown, [f"{tick:g}" for tick in shown], "× what the model takes (logarithmic)")
    return figure


def _rows(every: Sequence[tuple[FedModel, FedBy]]) -> list[ExportRow]:
    return [pipeline_row(fed.summary, model, fed) for model, fed in every]
