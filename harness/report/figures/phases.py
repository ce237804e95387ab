"""Where the time of a trial goes: phases stacked, a bar for each cell."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from harness.analysis import CellSummary, WorkloadSummary
from harness.report.figures.svg import HATCHES, PAPER, SERIES, Picture, picture, style
from harness.report.text import PHASE_WORDS, STATUS_WORDS, plural, seconds, shortened

STACKED = ("start_s", "build_s", "first_step_s", "check_s", "exit_s", "warmup_s", "steady_s")
"""Waiting is left out: it is the time of the others."""
MOST = 50


def phases_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """Median seconds of each phase; None when no trial got through one."""
    cells = [cell for cell in summary.cells if any(cell.trials.phases_s.get(phase) for phase in STACKED)]
    shown = cells[:MOST]
    if not shown:
        return None
    phases = [phase for phase in STACKED if any(cell.trials.phases_s.get(phase) for cell in shown)]
    with style():
        figure = Figure(figsize=(8.6, 1.25 + 0.25 * len(shown)), layout="constrained")
        axes = figure.subplots()
        left = [0.0] * len(shown)
        for phase in phases:
            look = STACKED.index(phase)
            widths = [cell.trials.phases_s.get(phase, 0.0) for cell in shown]
            axes.barh(range(len(shown)), widths, left=left, height=0.68, color=SERIES[look], edgecolor=PAPER,
                      hatch=HATCHES[look], linewidth=0.6)  # fmt: skip
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(shown)), [_label(cell) for cell in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds, median over trials")
        axes.grid(axis="x")
        handles = [
            Patch(facecolor=SERIES[look], edgecolor=PAPER, hatch=HATCHES[look], label=PHASE_WORDS[phase])
            for look, phase in enumerate(STACKED)
            if phase in phases
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=9)
    caption = "A trial that failed stops where its bar ends. Waiting for a turn is not drawn: it is the others' time."
    if len(cells) > len(shown):
        caption += f" The first {len(shown)} of {len(cells)} cells are drawn; the table has all."
    return picture(figure, name, "Time per phase", _describe(shown), caption)


def _label(cell: CellSummary) -> str:
    return shortened(cell.label) + ("" if cell.trials.status == "ok" else f" ({STATUS_WORDS[cell.trials.status]})")


def _describe(cells: list[CellSummary]) -> str:
    fixed = [(cell.trials.fixed_s, cell) for cell in cells if cell.trials.fixed_s is not None]
    text = f"Stacked bars of {plural(len(cells), 'cell')}."
    if fixed:
        low, high = min(fixed, key=lambda pair: pair[0]), max(fixed, key=lambda pair: pair[0])
        text += (
            f" The fixed cost of a trial is between {seconds(low[0])} ({shortened(low[1].label)}) and "
            f"{seconds(high[0])} ({shortened(high[1].label)})."
        )
    return text
