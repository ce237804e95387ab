"""A comparison as one self-contained page in the look of the report."""

from dataclasses import dataclass, replace

from harness.analysis.comparison import Comparison
from harness.environment import Fact, fact_words
from harness.record.manifest import RunManifest
from harness.report.comparison.base import Renderer, Surface
from harness.report.comparison.forest import forest_figure
from harness.report.comparison.notes import notes_of
from harness.report.comparison.rule import margin_words, methods, rule_sentences
from harness.report.comparison.table import comparison_table
from harness.report.comparison.words import change_row, headline, sides_line, title, verdict_sentences
from harness.report.page.templating import rendered
from harness.report.tables.table import Table
from harness.report.words.text import NOTHING
from harness.visible import printable


@dataclass(frozen=True)
class _Html:
    name: str = "html"
    suffix: str = ".html"

    def render(self, comparison: Comparison, surface: Surface) -> str:
        """See Renderer."""
        return (
            rendered(
                "comparison.html.j2",
                comparison=comparison,
                headline=headline(comparison),
                title=title(comparison),
                sentences=verdict_sentences(comparison),
                sides=sides_line(comparison),
                margins=margin_words(comparison.margins),
                changes=[change_row(change) for change in comparison.unasked],
                notes=notes_of(comparison),
                picture=forest_figure(comparison, "forest"),
                table=_unbroken(comparison_table(comparison)),
                rules=rule_sentences(comparison),
                environments=_environments(comparison),
                methods=methods(comparison),
                runs=list(dict.fromkeys(printable(manifest.run_id) for manifest in comparison.manifests)),
                version=printable(comparison.manifests[1].harness_version),
                printable=printable,
            )
            + "\n"
        )


def _unbroken(table: Table) -> Table:
    """No line ends between a figure and its percent sign."""
    return replace(
        table, rows=tuple(tuple(text.replace(" %", "\N{NO-BREAK SPACE}%") for text in row) for row in table.rows)
    )


def _environments(comparison: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, facts) of each run: what ran, and on what."""
    a, b = comparison.manifests
    if a.run_id == b.run_id:
        return [(f"Run {printable(a.run_id)}", _facts(a))]
    return [(f"{side}: run {printable(manifest.run_id)}", _facts(manifest)) for side, manifest in (("A", a), ("B", b))]


def _facts(manifest: RunManifest) -> list[tuple[str, str]]:
    found: dict[str, Fact] = {
        "measured": manifest.created_utc,
        "command": " ".join(manifest.command) or NOTHING,
        **manifest.facts,
    }
    return [(printable(name), printable(fact_words(value))) for name, value in found.items()]


RENDERER: Renderer = _Html()
