"""What a run of collectives comes to: of each, the most that it moves and the least that it takes."""

from harness.analysis import RunSummary
from harness.analysis.collectives import CollectiveFigures, CollectiveGroup, collective_groups
from harness.report.words.text import seconds, significant
from harness.spec.collective import size_text
from harness.visible import printable

_GIGA = 1e9


def collective_lines(summary: RunSummary) -> tuple[str, ...]:
    """A line for each collective and who takes part in it, of which anything was measured."""
    return tuple(printable(_line(group)) for group in collective_groups(summary) if group.curves)


def _line(group: CollectiveGroup) -> str:
    measured = [(one, one.time_s, one.busbw) for curve in group.curves for one in curve.figures]
    known = [(one, time.value, busbw.value) for one, time, busbw in measured if time is not None and busbw is not None]
    most, _, speed = max(known, key=lambda of: of[2])
    least, time, _ = min(known, key=lambda of: of[1])
    return (
        f"{group.collective}, {group.between}: busbw {significant(speed / _GIGA)} GB/s at most, {_where(group, most)}; "
        f"{seconds(time)} at least, {_where(group, least)}."
    )


def _where(group: CollectiveGroup, one: CollectiveFigures) -> str:
    return f"at {size_text(one.cell.size, 'B', ' ')} ({group.name_of(one.cell)})"
