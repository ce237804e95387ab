"""The clock of each GPU against the turns of a run."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis.gpus import ClockReading
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Figure, Line2D, MaxNLocator, StrMethodFormatter
from harness.report.figures.svg import INK, MARKERS, SERIES, Picture, picture, style
from harness.visible import plural

_MOST_CARDS = len(SERIES)
_HELD: dict[str, Any] = {"color": INK, "marker": "x", "markersize": 6, "linestyle": "none"}


def clocks_figure(readings: Sequence[ClockReading], name: str) -> Picture | None:
    """Megahertz of the SM clock, a dot a window, a cross where it was held down; None where no clock was read."""
    if not readings:
        return None
    cards = list(dict.fromkeys(reading.card for reading in readings))
    held = [reading for reading in readings if reading.slowed]
    with style():
        figure = Figure(figsize=(8.2, 3.2), layout="constrained")
        axes = figure.subplots()
        for look, card in enumerate(cards[:_MOST_CARDS]):
            own = [reading for reading in readings if reading.card == card]
            axes.plot([one.turn for one in own], [one.sm_clock_mhz for one in own], **_dots(look))
        shown = [one for one in held if one.card in cards[:_MOST_CARDS]]
        axes.plot([one.turn for one in shown], [one.sm_clock_mhz for one in shown], **_HELD)
        axes.set_xlabel("turn, in the order of the run")
        axes.set_ylabel("SM clock, MHz")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")
        keys = [Line2D([], [], label=f"GPU {card}", **_dots(look)) for look, card in enumerate(cards[:_MOST_CARDS])]
        keys += [Line2D([], [], label="held down", **_HELD)] if shown else []
        figure.legend(handles=keys, loc="outside lower center", ncols=min(4, len(keys)), fontsize=9)
    return picture(
        figure, name, "GPU clock by turn", _described(cards, readings), _caption(held, readings), _rows(readings)
    )


def _dots(look: int) -> dict[str, Any]:
    return {"color": SERIES[look], "marker": MARKERS[look], "markersize": 3, "linestyle": "none"}


def _caption(held: Sequence[ClockReading], readings: Sequence[ClockReading]) -> str:
    why = ", ".join(sorted({word for one in held for word in one.slowed.split(", ")}))
    words = f"A clock was held down in {plural(len(held), 'window')} of {len(readings):,}: {why}." if held else ""
    told = words or f"No clock is known to have been held down in {plural(len(readings), 'window')}."
    more = "" if len({one.card for one in readings}) <= _MOST_CARDS else f" The first {_MOST_CARDS} GPUs are drawn."
    return (
        f"{told} Dot: the mean of the readings within a window, warm-up included. Cells that took a turn at different "
        f"clocks were not timed alike; the axis need not start at 0.{more}"
    )


def _described(cards: Sequence[str], readings: Sequence[ClockReading]) -> str:
    told = []
    for card in cards[:_MOST_CARDS]:
        clocks = [one.sm_clock_mhz for one in readings if one.card == card]
        told.append(f"GPU {card}: {min(clocks):,} to {max(clocks):,} MHz in {plural(len(clocks), 'window')}")
    return f"{'; '.join(told)}."


def _rows(readings: Sequence[ClockReading]) -> list[ExportRow]:
    return [asdict(one) for one in readings]
