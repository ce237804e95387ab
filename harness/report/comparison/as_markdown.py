"""A comparison for a pull request: the verdict, the table, how it was judged."""

import re
from dataclasses import dataclass

from harness.analysis.comparison import Comparison
from harness.report.comparison.base import Renderer, Surface
from harness.report.comparison.judged import rule_sentences
from harness.report.comparison.notes import notes_of
from harness.report.comparison.table import comparison_table, narrowed
from harness.report.comparison.words import change_lines, headline, sides_line
from harness.report.export.as_markdown import escape
from harness.report.table import Table


@dataclass(frozen=True)
class _Markdown:
    name: str = "markdown"
    suffix: str = ".md"

    def render(self, comparison: Comparison, surface: Surface) -> str:
        """See Renderer. The first line has the verdict and no figure: differing environments come before those."""
        verdict, _, rest = headline(comparison).partition(": ")
        lines = [f"**{verdict}**: {escape(rest)}", "", escape(sides_line(comparison))]
        if comparison.changes:
            lines += ["", "The environments differ:", "", *(f"- {escape(line)}" for line in change_lines(comparison))]
        lines += ["", *_table(narrowed(comparison_table(comparison))), ""]
        lines += ["", *(f"- {escape(text)}" for text in notes_of(comparison)), ""]
        lines += ["<details><summary>How it was judged</summary>", ""]
        lines += [f"- {escape(text)}" for text in rule_sentences(comparison)]
        return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, "", "</details>", ""]))


def _table(table: Table) -> list[str]:
    return [
        _line([column.name for column in table.columns]),
        _line(["---:" if column.numeric else ":---" for column in table.columns]),
        *(_line([escape(text) for text in row]) for row in table.rows),
    ]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


RENDERER: Renderer = _Markdown()
