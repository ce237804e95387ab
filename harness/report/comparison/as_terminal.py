"""A comparison as plain text for a terminal."""

import textwrap
from dataclasses import dataclass, replace

from harness.analysis.comparison import Comparison
from harness.report.comparison.base import Renderer, Surface
from harness.report.comparison.notes import notes_of
from harness.report.comparison.phrases import PHRASES
from harness.report.comparison.rule import rule_sentences
from harness.report.comparison.table import comparison_table, narrowed
from harness.report.comparison.words import change_lines, headline, sides_line, verdict_sentences
from harness.report.terminal.table import absent_words, table_text

_WIDEST = 100
"""Columns of running text; longer lines are hard to read."""
_WIDE = 150
"""Columns from which the whole table has room."""


@dataclass(frozen=True)
class _Terminal:
    name: str = "terminal"
    suffix: str = ".txt"

    def render(self, comparison: Comparison, surface: Surface) -> str:
        """See Renderer. What differs about the machines comes before any figure, but of what a person set apart."""
        width = min(surface.width, _WIDEST)
        table = comparison_table(comparison)
        shown = table if surface.width >= _WIDE else narrowed(table)
        absent = [column.name for column in table.columns if column not in shown.columns]
        notes = [table.note, *filter(None, [absent_words(absent, _WIDE)])]
        verdict = _filled([headline(comparison) + ".", *verdict_sentences(comparison)], width)
        parts = [
            _filled([sides_line(comparison)], width),
            _listed("The environments differ:", change_lines(comparison), width),
            table_text(replace(shown, note=""), surface.width, surface.styled) + _filled(notes, width),
            _listed("Notes:", notes_of(comparison), width),
            _filled(rule_sentences(comparison), width),
        ]
        whole = [verdict, *parts] if PHRASES[comparison.kind].one_decision else [*parts, verdict]
        return "\n".join(part for part in whole if part)


def _filled(sentences: tuple[str, ...] | list[str], width: int) -> str:
    return "".join(textwrap.fill(text, width, break_on_hyphens=False) + "\n" for text in sentences)


def _listed(title: str, lines: tuple[str, ...] | list[str], width: int) -> str:
    if not lines:
        return ""
    filled = (
        textwrap.fill(line, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        for line in lines
    )
    return "\n".join([title, *filled]) + "\n"


RENDERER: Renderer = _Terminal()
