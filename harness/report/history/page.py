"""The history as one self-contained page in the look of the report."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.history.series import Series
from harness.record.validation import Rate
from harness.report.figures import Picture
from harness.report.history.figure import history_figure
from harness.report.history.names import Names, machine_of, names_in
from harness.report.history.words import (
    Between,
    change_lines,
    false_alarm_line,
    history_table,
    summary_lines,
    why,
)
from harness.report.page.templating import rendered
from harness.report.tables.table import Table
from harness.report.words.text import listed
from harness.version import __version__
from harness.visible import plural, printable

MOST_FIGURES = 60
"""Series that are drawn, those that changed first; the table has all."""


@dataclass(frozen=True)
class Entry:
    """One series on the page."""

    name: str
    machine: str
    picture: Picture | None
    changes: tuple[tuple[str, str, tuple[str, ...]], ...]
    """(earlier run, later run, what differs between them) of each change."""


def history_page(series: Sequence[Series], between: Between, runs: int, alarms: Rate | None) -> str:
    """The page as text; the same series give the same bytes. `alarms` is what `false_alarms` counted."""
    names = names_in(series)
    ordered = sorted(series, key=lambda one: not one.changes)  # stable: what changed comes first
    drawn = [one for one in ordered if len(one.points) > 1][:MOST_FIGURES]
    table: Table = history_table(series)
    return (
        rendered(
            "history.html.j2",
            lines=summary_lines(series, runs),
            changes=[line for line in change_lines(series, between) if not line.startswith(" ")],
            machines=listed(names.machines),
            alarms=false_alarm_line(alarms),
            entries=[_entry(one, names, between, number) for number, one in enumerate(drawn)],
            runs=plural(runs, "run"),
            newest=max((point.created_utc for one in series for point in one.points), default=""),
            left_out=len([one for one in ordered if len(one.points) > 1]) - len(drawn),
            table=table,
            version=__version__,
            changed=any(one.changes for one in series),
        )
        + "\n"
    )


def _entry(one: Series, names: Names, between: Between, number: int) -> Entry:
    changes = tuple((printable(c.before), printable(c.after), why(c, between)) for c in one.changes)
    name = names.whole(one)
    return Entry(name, machine_of(one), history_figure(one, f"h{number}", name), changes)
