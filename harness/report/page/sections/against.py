"""The run against a base run: verdicts first, then sizes."""

from dataclasses import dataclass

from harness.report.comparison.forest import forest_figure
from harness.report.comparison.notes import notes_of
from harness.report.comparison.rule import rule_sentences
from harness.report.comparison.table import comparison_table
from harness.report.comparison.words import change_row, headline, sides_line, verdict_sentences
from harness.report.figures import Picture
from harness.report.page.sections.base import PageSource, Section
from harness.report.tables.table import Table
from harness.visible import printable


@dataclass(frozen=True)
class Against:
    """What the section shows. A is the base run, B the run of the page."""

    sides: str
    verdict: str
    headline: str
    sentences: tuple[str, ...]
    rules: tuple[str, ...]
    changes: tuple[tuple[str, str, str, bool], ...]
    """(what differs, in A, in B, whether it decides speed by itself)."""
    notes: tuple[str, ...]
    picture: Picture | None
    table: Table


def base_run(source: PageSource) -> Section | None:
    """Every cell that both runs have; None where no base run was given."""
    comparison = source.comparison
    if comparison is None:
        return None
    content = Against(
        sides=sides_line(comparison),
        verdict=comparison.verdict,
        headline=headline(comparison),
        sentences=verdict_sentences(comparison),
        rules=tuple(rule_sentences(comparison)),
        changes=tuple(change_row(change) for change in comparison.changes),
        notes=tuple(notes_of(comparison)),
        picture=forest_figure(comparison, "base-forest"),
        table=comparison_table(comparison),
    )
    return Section("base", f"Compared with run {printable(comparison.title_a)}", "against.html.j2", content)
