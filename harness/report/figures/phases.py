"""Where the time of a trial goes: phases stacked, a bar for each cell, with its total."""

from collections.abc import Mapping, Sequence

from harness.analysis import CellSummary, WorkloadSummary
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Axes, Patch
from harness.report.figures.layout import bar_ends, bar_look, bar_parts, round_ticks, row_axes, x_axis
from harness.report.figures.svg import Picture, picture, style
from harness.report.words.text import PHASE_WORDS, STACKED, seconds, shortened, significant
from harness.visible import plural

MOST = 40


def phases_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """Median seconds of each phase of the measured cells; None without any. The data have the others as well."""
    cells = [cell for cell in summary.cells if any(cell.trials.phases_s.get(phase) for phase in STACKED)]
    measured = [cell for cell in cells if cell.measured is not None]
    shown = measured[:MOST]
    if not shown:
        return None
    phases = [phase for phase in STACKED if any(cell.trials.phases_s.get(phase) for cell in shown)]
    with style():
        keys = [
            Patch(label=PHASE_WORDS[phase], **bar_look(look)) for look, phase in enumerate(STACKED) if phase in phases
        ]
        names = {row: cell.label for row, cell in enumerate(shown)}
        figure, (axes,) = row_axes(names, len(names), width=8.2, row=0.24, keys=keys, columns=4)
        axes.set_xlim(0, 1.1 * max(total_s(cell.trials.phases_s) for cell in shown))
        x_axis(axes, *round_ticks(*axes.get_xlim(), most=8), "seconds of one trial, median over trials")
        _draw_bars(axes, shown, phases)
    caption = (
        f"{_found(measured)} First the fixed cost, then warm-up and what is measured; at the end of each bar its "
        "total. Waiting for a turn is not drawn: it is the others' time."
    )
    if len(measured) > len(shown):
        caption += f" The first {len(shown)} of {len(measured)} cells are drawn; the table and the CSV have all."
    return picture(figure, name, "Time per phase", _describe(shown), caption.strip(), _rows(cells))


def total_s(phases: Mapping[str, float]) -> float:
    """Seconds of all phases that are stacked."""
    return sum(phases.get(phase, 0.0) for phase in STACKED)


def _draw_bars(axes: Axes, cells: Sequence[CellSummary], phases: Sequence[str]) -> None:
    """Phase after phase, and the total behind each bar. The axes have their limits."""
    left = [0.0] * len(cells)
    for phase in phases:
        ends = [start + cell.trials.phases_s.get(phase, 0.0) for start, cell in zip(left, cells, strict=True)]
        bar_parts(axes, STACKED.index(phase), zip(range(len(cells)), left, ends, strict=True))
        left = ends
    bar_ends(axes, left, [seconds(total) for total in left])


def _rows(cells: Sequence[CellSummary]) -> list[ExportRow]:
    return [
        {
            "cell_id": cell.cell_id,
            "cell": cell.label,
            "status": cell.trials.status,
            **{phase: cell.trials.phases_s.get(phase) for phase in (*STACKED, "waiting_s")},
            "total_s": total_s(cell.trials.phases_s),
        }
        for cell in cells
    ]


def _found(cells: Sequence[CellSummary]) -> str:
    """How much of a measured cell's time is measurement."""
    slowest = max(cells, key=lambda cell: total_s(cell.trials.phases_s))
    total = sum(total_s(cell.trials.phases_s) for cell in cells)
    steady = sum(cell.trials.phases_s.get("steady_s", 0.0) for cell in cells)
    first = sum(cell.trials.phases_s.get("first_step_s", 0.0) for cell in cells)
    return (
        f"Of the measured cells' time {significant(100 * steady / total, 2)} % is steady state, which is what is "
        f"measured, and {significant(100 * first / total, 2)} % the first step (trace and compile). The longest trial "
        f"is {shortened(slowest.label)}'s."
    )


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
