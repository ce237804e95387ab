"""A comparison for a pull request: the verdict, the table, how it was judged."""

import re
from dataclasses import dataclass, replace

from harness.analysis.comparison import Comparison
from harness.report.comparison.base import Renderer, Surface
from harness.report.comparison.notes import notes_of
from harness.report.comparison.rule import rule_sentences
from harness.report.comparison.table import comparison_table, narrowed
from harness.report.comparison.words import change_lines, headline, sides_line
from harness.report.export.as_markdown import escape, table_lines


@dataclass(frozen=True)
class _Markdown:
    name: str = "markdown"
    suffix: str = ".md"

    def render(self, comparison: Comparison, surface: Surface) -> str:
        """See Renderer. The first line has the verdict and no figure: differing environments come before those."""
        first, *rest = re.split("(?=[:,;])", headline(comparison), maxsplit=1)
        lines = [f"**{first}**{escape(''.join(rest))}", "", escape(sides_line(comparison))]
        if comparison.unasked:
            lines += ["", "The environments differ:", "", *(f"- {escape(line)}" for line in change_lines(comparison))]
        # its note is on columns that are not shown here
        lines += table_lines(replace(narrowed(comparison_table(comparison)), note=""))
        lines.append("")
        lines += ["", *(f"- {escape(text)}" for text in notes_of(comparison)), ""]
        lines += ["<details><summary>How it was judged</summary>", ""]
        lines += [f"- {escape(text)}" for text in rule_sentences(comparison)]
        return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, "", "</details>", ""]))


RENDERER: Renderer = _Markdown()
