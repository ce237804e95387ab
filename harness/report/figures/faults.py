"""Where the time between a fault and the next useful step goes: stacked bars, one a scenario."""

from collections.abc import Mapping

from harness.analysis.faults import FaultsSummary, MedianRange, ScenarioSummary
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Axes, Figure, Patch
from harness.report.figures.layout import bar_look
from harness.report.figures.svg import INK, Picture, picture, style
from harness.report.words.text import seconds
from harness.spec.axes import ENGINE
from harness.spec.cell import TrainingCell
from harness.visible import plural

PARTS = ("noticed", "restart", "replay")
PART_WORDS = {
    "noticed": "until it is noticed",
    "restart": "restart: processes, cluster, model, checkpoint",
    "replay": "replay: tracing, and steps done again",
}
GOES_ON = "training goes on: its longest standstill"


def trained_by(cell: TrainingCell) -> str:
    """The strategy, with the engine where that is another than TensorFlow."""
    return cell.strategy if cell.engine == ENGINE else f"{cell.engine} {cell.strategy}"


def faults_figure(summary: FaultsSummary, words: Mapping[str, str]) -> Picture | None:
    """Medians over jobs; None when no job came to a useful step again."""
    shown = [s for s in summary.scenarios if _whole(s) is not None]
    if not shown:
        return None
    with style():
        figure = Figure(figsize=(8.6, 1.35 + 0.27 * len(shown)), layout="constrained")
        axes = figure.subplots()
        for row, scenario in enumerate(shown):
            _draw_bar(axes, row, scenario)
        axes.set_yticks(range(len(shown)), [_label(scenario, words) for scenario in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.margins(x=0.1)
        axes.set_xlim(left=0)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds, median over jobs")
        axes.grid(axis="x")
        looks = (*(PART_WORDS[part] for part in PARTS), GOES_ON)
        handles = [Patch(**bar_look(look), label=text) for look, text in enumerate(looks)]
        figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize=9)
    caption = (
        f"Training stood still for {_range(shown, words)}. From the fault to the next useful step: one that had not "
        "been done before. The line over a bar is the range over jobs; the parts of a bar are in the proportion of "
        "their medians. Where training never began again there is only the last kind: the longest time without a "
        "useful step."
    )
    rows = [_row(s) for s in summary.scenarios]
    return picture(figure, "pauses", "How long training stood still", _describe(shown, words), caption, rows)


def _draw_bar(axes: Axes, row: int, scenario: ScenarioSummary) -> None:
    """The parts one after the other, the range over jobs as a line over them, and the median beside."""
    left, spread = 0.0, _whole(scenario)
    for look, width in _widths(scenario):
        axes.barh(row, width, left=left, height=0.68, linewidth=0.6, **bar_look(look))
        left += width
    assert spread is not None
    axes.plot([spread.low, spread.high], [row, row], color=INK, linewidth=1.0)
    at = (max(left, spread.high), row)
    axes.annotate(seconds(spread.median), at, xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)


def _row(scenario: ScenarioSummary) -> ExportRow:
    spreads = {
        "standing_still_s": _whole(scenario),
        "detection_s": scenario.detection_s,
        "restart_s": scenario.restart_s,
        "replay_s": scenario.replay_s,
        "steps_lost": scenario.steps_lost,
    }
    row: ExportRow = {"scenario": scenario.scenario, "jobs": scenario.planned}
    for name, spread in spreads.items():
        row |= {
            f"{name}_median": spread.median if spread else None,
            f"{name}_low": spread.low if spread else None,
            f"{name}_high": spread.high if spread else None,
        }
    return row


def _whole(scenario: ScenarioSummary) -> MedianRange | None:
    """The time to the next useful step; where training went on, the longest standstill, which may come later."""
    return scenario.useful_step_s if scenario.restart_s is not None else scenario.standstill_s


def _widths(scenario: ScenarioSummary) -> list[tuple[int, float]]:
    """The bar's parts, as long together as the median of the whole."""
    spread = _whole(scenario)
    whole = spread.median if spread is not None else 0.0
    if scenario.restart_s is None or scenario.replay_s is None or scenario.detection_s is None:
        return [(len(PARTS), whole)]
    parts = (scenario.detection_s.median, scenario.restart_s.median, scenario.replay_s.median)
    total = sum(parts) or 1.0
    return [(look, whole * part / total) for look, part in enumerate(parts)]


def _label(scenario: ScenarioSummary, words: Mapping[str, str]) -> str:
    every = f"every {scenario.checkpoint_every}" if scenario.checkpoint_every else "no checkpoint"
    return f"{trained_by(scenario.cell)} · {words[scenario.fault]} · {every}"


def _describe(shown: list[ScenarioSummary], words: Mapping[str, str]) -> str:
    return f"Stacked bars of {plural(len(shown), 'scenario')}: {_range(shown, words)}."


def _range(shown: list[ScenarioSummary], words: Mapping[str, str]) -> str:
    """The shortest and the longest median, each with its scenario."""

    def middle(scenario: ScenarioSummary) -> float:
        spread = _whole(scenario)
        return spread.median if spread is not None else 0.0

    low, high = min(shown, key=middle), max(shown, key=middle)
    ends = [f"{seconds(middle(scenario))} ({_label(scenario, words)})" for scenario in (low, high)]
    return ends[0] if low is high else " to ".join(ends)
