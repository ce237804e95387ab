"""What a run of collectives comes to: of each, the most that it moves and the least that it takes."""

from harness.analysis import Interval, RunSummary
from harness.analysis.cells import marked
from harness.analysis.collectives import CollectiveFigures, CollectiveGroup, collective_groups
from harness.report.words.text import IN_THESE_MINUTES, plus_minus, significant, unit_of
from harness.spec.collective import size_text
from harness.visible import printable

_GIGA = 1e9


def collective_lines(summary: RunSummary) -> tuple[str, ...]:
    """A line for each collective and who takes part in it, of which anything was measured."""
    return tuple(printable(_line(group)) for group in collective_groups(summary) if _known(group))


def _line(group: CollectiveGroup) -> str:
    known = _known(group)
    most, _, speed = max(known, key=lambda of: of[2].value)
    least, time, _ = min(known, key=lambda of: of[1].value)
    speed, (unit, factor) = speed.scaled(1 / _GIGA), unit_of(time.value)
    time = time.scaled(factor)
    when = f", {IN_THESE_MINUTES}" if speed.known or time.known else ""
    return (
        f"{group.collective}, {group.between}: busbw {_within(speed, 'GB/s')} at most, {_where(group, most)}; "
        f"{_within(time, unit)} at least, {_where(group, least)}{when}."
    )


def _within(interval: Interval, unit: str) -> str:
    known = f" {plus_minus(interval)}" if interval.known else ""
    return f"{significant(interval.value)} {unit}{known}"


def _known(group: CollectiveGroup) -> list[tuple[CollectiveFigures, Interval, Interval]]:
    """Each that was measured, with seconds and bytes/s; without those that no ranking takes in, unless there are no
    others."""
    ranked = [one for one in group.figures if one.summary.place is not None]
    measured = [(one, one.time_s, one.busbw) for one in ranked or group.figures]
    return [(one, time, busbw) for one, time, busbw in measured if time is not None and busbw is not None]


def _where(group: CollectiveGroup, one: CollectiveFigures) -> str:
    size, model = size_text(one.cell.size, "B", " "), one.cell.gradients
    name = marked(group.name_of(one.cell), one.summary.trials)
    return f"at {f'the gradients of {model}, {size}' if model else size} ({name})"
