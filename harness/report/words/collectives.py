"""What a run of collectives comes to: of each, the most that it moves and the least that it takes."""

from harness.analysis import RunSummary
from harness.analysis.cells import marked
from harness.analysis.collectives import CollectiveFigures, CollectiveGroup, collective_groups
from harness.report.words.text import seconds, significant
from harness.spec.collective import size_text
from harness.visible import printable

_GIGA = 1e9


def collective_lines(summary: RunSummary) -> tuple[str, ...]:
    """A line for each collective and who takes part in it, of which anything was measured."""
    return tuple(printable(_line(group)) for group in collective_groups(summary) if _known(group))


def _line(group: CollectiveGroup) -> str:
    known = _known(group)
    most, _, speed = max(known, key=lambda of: of[2])
    least, time, _ = min(known, key=lambda of: of[1])
    return (
        f"{group.collective}, {group.between}: busbw {significant(speed / _GIGA)} GB/s at most, {_where(group, most)}; "
        f"{seconds(time)} at least, {_where(group, least)}."
    )


def _known(group: CollectiveGroup) -> list[tuple[CollectiveFigures, float, float]]:
    """Each that was measured, with seconds and bytes/s; without those that no ranking takes in, unless there are no
    others."""
    ranked = [one for one in group.figures if one.summary.place is not None]
    measured = [(one, one.time_s, one.busbw) for one in ranked or group.figures]
    return [(one, time.value, busbw.value) for one, time, busbw in measured if time is not None and busbw is not None]


def _where(group: CollectiveGroup, one: CollectiveFigures) -> str:
    size, model = size_text(one.cell.size, "B", " "), one.cell.gradients
    name = marked(group.name_of(one.cell), one.summary.trials)
    return f"at {f'the gradients of {model}, {size}' if model else size} ({name})"
