"""What is wrong, and what was not measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.manifest import RunManifest
from harness.report.page.sections.base import PageSource, Section
from harness.report.tables.table import Head, Table
from harness.report.words.problems import Explained, Remark, explained, remarks
from harness.report.words.text import NOTHING
from harness.visible import printable

MOST_REASONS = 60
"""Reasons with an article of their own on the page."""


@dataclass(frozen=True)
class Wrong:
    """Trials that did not end well, and what to know of those that did."""

    explained: tuple[Explained, ...]
    """At most `MOST_REASONS`, the worst."""
    rest: Table | None
    """The reasons that are not among them."""
    remarks: tuple[Remark, ...]


def problems(source: PageSource) -> Section | None:
    """Every cell to look at, with the evidence."""
    found = explained(source.summary)
    rest = _rest(found[MOST_REASONS:]) if len(found) > MOST_REASONS else None
    content = Wrong(found[:MOST_REASONS], rest, remarks(source.summary))
    if not content.explained and not content.remarks:
        return None
    return Section("problems", "What is wrong", "problems.html.j2", content)


def _rest(found: Sequence[Explained]) -> Table:
    """A row a reason."""
    columns = ("cell", "status", "reason", "what did not hold", "what to do")
    rows = [
        (
            "; ".join(entry.cells),
            entry.heading,
            entry.reason or NOTHING,
            "; ".join(f"{words}: {text}" for words, text in entry.details) or NOTHING,
            entry.remedy or NOTHING,
        )
        for entry in found
    ]
    return Table("More of what is wrong", tuple(Head(name, False) for name in columns), tuple(rows))


def left_out(source: PageSource) -> Section | None:
    """Combinations that were asked for and left out."""
    grouped = left_out_by_reason(source.manifest)
    return Section("left-out", "Left out", "left_out.html.j2", grouped) if grouped else None


def left_out_by_reason(manifest: RunManifest) -> list[tuple[str, list[str]]]:
    """(reason, combinations that were left out): many share a reason."""
    grouped: dict[str, list[str]] = {}
    for item in manifest.left_out:
        grouped.setdefault(printable(item.reason), []).append(printable(item.combination))
    return list(grouped.items())
