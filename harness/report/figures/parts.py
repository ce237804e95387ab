"""Where a step's time goes: its parts stacked, a bar for each cell, with what hides behind them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.analysis.explain import Explanation
from harness.analysis.parts import PartName
from harness.report.figures.artists import Axes, Patch
from harness.report.figures.layout import BAR, bar_ends, bar_look, bar_parts, round_ticks, row_axes, x_axis
from harness.report.figures.svg import INK, Picture, picture, style
from harness.report.tables.explain import part_rows
from harness.report.words.text import listed, seconds, significant
from harness.spec.cell import cell_names

STACKED: Sequence[Mapping[PartName, str]] = (
    {"input": "waiting for input"},
    {"dispatch": "dispatch"},
    {"compute": "compute"},
    {"contention": "contention"},
    {"communication": "communication, waited for", "pull": "pull of weights"},
    {"update": "update", "push": "push of gradients"},
    {"unexplained": "unexplained"},
)
"""The parts in the order of a step, and their keys; no step has two that look alike."""
HIDDEN: PartName = "hidden"
_HIDDEN_WORDS = "communication, hidden"
_BELOW = BAR - 0.2
"""What hides takes the lowest fifth of a row."""
_OVER = BAR + 0.08
"""Half of the line that is the whole step, in rows."""
_WHOLE: Mapping[str, Any] = {"color": INK, "linewidth": 1.6, "solid_capstyle": "butt"}


def parts_figure(explanations: Sequence[Explanation], name: str) -> Picture | None:
    """A bar for each cell whose parts are known; None without any."""
    shown = [found for found in explanations if found.parts and found.step_time_s]
    if not shown:
        return None
    names = cell_names([found.cell for found in explanations])
    labels = {row: names[found.cell.cell_id] for row, found in enumerate(shown)}
    hides = any(_ms(found, HIDDEN) > 0 for found in shown)
    there = {part.name for found in shown for part in found.parts}
    looks = [" or ".join(words for name, words in look.items() if name in there) for look in STACKED]
    with style():
        keys = [Patch(label=words, **bar_look(look)) for look, words in enumerate(looks) if words]
        keys += [Patch(label=_HIDDEN_WORDS, **bar_look(len(STACKED)))] if hides else []
        figure, (axes,) = row_axes(labels, len(shown), width=8.2, row=0.42, keys=keys, columns=4)
        axes.set_xlim(0, 1.14 * max(map(_reaches, shown)))
        x_axis(axes, *round_ticks(*axes.get_xlim(), most=8), "milliseconds of one step, mean over blocks")
        _draw(axes, shown)
    rows = part_rows(explanations)
    words = _describe(shown, labels)
    return picture(figure, name, "Where a step's time goes", words, _caption(shown, hides), rows)


def _ms(found: Explanation, name: PartName) -> float:
    """Of a part; 0 where it is not known."""
    shares = {part.name: part.value for part in (*found.parts, *found.within)}
    return shares.get(name, 0.0) * _step(found)


def _step(found: Explanation) -> float:
    return 1e3 * (found.step_time_s or 0.0)


def _reaches(found: Explanation) -> float:
    """How far its bar goes: as far as the whole step, or its parts where they are more."""
    return max(_step(found), sum(max(0.0, _ms(found, name)) for look in STACKED for name in look))


def _draw(axes: Axes, shown: Sequence[Explanation]) -> None:
    """Part after part; what hides ends where what is waited for begins, under what it hides behind."""
    left = [0.0] * len(shown)
    for look, names in enumerate(STACKED):
        ends = [start + max(0.0, sum(_ms(found, n) for n in names)) for start, found in zip(left, shown, strict=True)]
        bar_parts(axes, look, zip(range(len(shown)), left, ends, strict=True))
        if "communication" in names:
            begun = [max(0.0, at - max(0.0, _ms(found, HIDDEN))) for at, found in zip(left, shown, strict=True)]
            hidden = list(zip(range(len(shown)), begun, left, strict=True))
        left = ends
    bar_parts(axes, len(STACKED), hidden, top=-_BELOW)
    whole = [x for found in shown for x in (_step(found), _step(found), math.nan)]
    axes.plot(whole, [y for row in range(len(shown)) for y in (row - _OVER, row + _OVER, math.nan)], **_WHOLE)
    bar_ends(axes, list(map(_reaches, shown)), [seconds(found.step_time_s) for found in shown])


def _caption(shown: Sequence[Explanation], hides: bool) -> str:
    parts = ["The upright line is the whole step, its time behind the bar. Intervals are in the table and in the CSV."]
    if hides:
        parts.append(
            "The narrow strip is communication that costs nothing: what the sums take by themselves, less what the "
            "step waits for them. It runs behind what is above it."
        )
    less = {part.name for found in shown for part in found.parts if part.value < 0}
    if less:
        parts.append(
            f"Not drawn where it is below 0, by which the rest goes past the line: {listed(sorted(less), most=7)}."
        )
    untold = {name for found in shown for name in found.untold}
    if untold:
        parts.append(
            f"Not drawn where it could not be told, which the bar then lacks: {listed(sorted(untold), most=7)}."
        )
    return " ".join(parts)


def _describe(shown: Sequence[Explanation], labels: Mapping[int, str]) -> str:
    bars, keys = [], {name: words for look in STACKED for name, words in look.items()}
    for row, found in enumerate(shown):
        shares = {part.name: part.value for part in (*found.parts, *found.within)}
        told = [f"{words} {significant(100 * shares[name], 2)} %" for name, words in keys.items() if name in shares]
        told += [f"{_HIDDEN_WORDS} {significant(100 * shares[HIDDEN], 2)} %"] if HIDDEN in shares else []
        told += [f"{name} not told" for name in found.untold]
        bars.append(f"{labels[row]}, a step of {seconds(found.step_time_s)}: {listed(told, most=9)}")
    return f"Stacked bars of the parts of a step. {'; '.join(bars)}."
