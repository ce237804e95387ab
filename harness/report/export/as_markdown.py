"""Markdown: the answer and the tables, for a pull request or a wiki."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis import summarise
from harness.report.answer import answer_lines
from harness.report.export.base import Exporter, RunData, deliver
from harness.report.table import Table, failed_table, ops_table, ranking_table, scaling_table
from harness.report.text import printable


@dataclass(frozen=True)
class _Markdown:
    name: str = "markdown"
    summary: str = "the answer, the ranking, scaling and ops as GitHub tables"
    suffix: str = ".md"

    def export(self, run: RunData, target: Path | None) -> str | None:
        """See Exporter."""
        summary = summarise(run.manifest, run.trials)
        lines = [f"# {escape(run.manifest.run_id)}", "", *(f"- {escape(line)}" for line in answer_lines(summary))]
        tables = [make(work) for work in summary.workloads for make in (ranking_table, scaling_table, ops_table)]
        for table in (*tables, failed_table(summary)):
            if table.rows:
                lines += ["", *_lines(table)]
        return deliver("\n".join(lines) + "\n", target)


def _lines(table: Table) -> list[str]:
    rules = ["---:" if column.numeric else ":---" for column in table.columns]
    rows = [_row([escape(text) for text in row]) for row in table.rows]
    lines = [f"## {escape(table.title)}", "", _row([column.name for column in table.columns]), _row(rules), *rows]
    return [*lines, "", escape(table.note)] if table.note else lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """One line in which nothing is markup: a name must not become a table column, a link or a tag."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(printable(text).split()))


EXPORTER: Exporter = _Markdown()
