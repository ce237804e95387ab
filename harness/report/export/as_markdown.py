"""Markdown: the answer and the tables, for a pull request or a wiki."""

import functools
import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis import RunSummary, WorkloadSummary, summarise
from harness.analysis.collectives import of_collectives
from harness.analysis.limits import CellRate
from harness.record.reading import Run
from harness.report.export.base import Exporter, deliver
from harness.report.limits import known_rates
from harness.report.tables.collectives import known_collectives, latency_table
from harness.report.tables.engines import engines_table
from harness.report.tables.pipelines import stages_table
from harness.report.tables.sweep import (
    failed_table,
    ops_table,
    ranking_table,
    scaling_table,
    told_of,
    unproved_table,
)
from harness.report.tables.table import Table, noted_once
from harness.report.words.answer import answer_lines
from harness.visible import one_line, printable

LARGEST = 65_536
"""Characters that GitHub takes for a comment or the text of a pull request."""
FEWER_ROWS = (None, 100, 30, 10, 3)
"""Rows of a table, tried in this order until the text is no longer than `LARGEST`."""


@dataclass(frozen=True)
class _Markdown:
    name: str = "markdown"
    summary: str = "for a pull request: the answer and the ranking, the other tables folded; cut to what GitHub takes"
    suffix: str = ".md"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        summary = summarise(run.manifest, run.trials, run.rank_unproved)
        rates = known_rates(run, summary)
        collectives = known_collectives(run, summary)
        tables = functools.partial(_tables, summary, rates, collectives)
        text = _fitting(run.manifest.run_id, answer_lines(summary), tables)
        return deliver(text, target)


def told(run_id: str, lines: Sequence[str], tables: Sequence[Table], has_rest: str) -> str:
    """What is said of a run and its tables, cut as every run's. `has_rest` is as `table_lines` has it."""

    def shown(rows: int | None) -> Iterator[str]:
        for table in noted_once(tables):
            yield from _titled(table, rows, has_rest)

    return _fitting(run_id, lines, shown)


def _fitting(run_id: str, lines: Sequence[str], tables: Callable[[int | None], Iterable[str]]) -> str:
    """The lines and the tables, with as many rows of each as GitHub takes."""
    head = [f"# {escape(run_id)}", "", *(f"- {escape(line)}" for line in lines)]
    texts = ("\n".join([*head, *tables(rows)]) + "\n" for rows in FEWER_ROWS)
    text = next((text for text in texts if len(text) <= LARGEST), None)
    # hundreds of workloads: the answers alone, which are as many
    return text or "\n".join(head)[: LARGEST - 1] + "\n"


def _tables(
    summary: RunSummary, rates: Sequence[CellRate], collectives: Sequence[Table], rows: int | None
) -> Iterator[str]:
    """The ranking of each workload, of collectives what a reader of nccl-tests knows; the rest folded."""

    def of(work: WorkloadSummary, table: Table) -> Table:
        return told_of(work, table, summary)

    for table in noted_once([*collectives, latency_table(summary)]):
        yield from _titled(table, rows, has_rest="collectives")
    for work in summary.workloads:
        if not of_collectives(work):
            yield from _titled(ranking_table(work, summary.noise, rates=rates), rows)
        yield from _titled(of(work, stages_table(work)), rows, has_rest="pipelines")
        yield from _titled(of(work, unproved_table(work)), rows)
        yield from _titled(of(work, engines_table(work)), rows)
    for work in summary.workloads:
        for make in (scaling_table, ops_table):
            yield from _folded(of(work, make(work)), rows)
    yield from _titled(failed_table(summary), rows)


def table_lines(table: Table, most: int | None = None, has_rest: str = "cells") -> list[str]:
    """The table without its title: an empty line, heads, at most `most` rows, and its note. Nothing without rows.
    `has_rest` is a format that has all rows."""
    if not table.rows:
        return []
    rules = ["---:" if column.numeric else ":---" for column in table.columns]
    rows = [_row(_marked(row, index in table.marked)) for index, row in enumerate(table.rows[:most])]
    lines = ["", _row([column.name for column in table.columns]), _row(rules), *rows]
    if len(rows) < len(table.rows):
        more = len(table.rows) - len(rows)
        lines += [
            "",
            f"{more:,} more rows are left out here: `python -m harness export RUN --format {has_rest}` has them.",
        ]
    return [*lines, "", escape(table.note)] if table.note else lines


def _titled(table: Table, most: int | None, has_rest: str = "cells") -> list[str]:
    lines = table_lines(table, most, has_rest)
    return ["", f"## {escape(table.title)}", *lines] if lines else []


def _marked(row: Sequence[str], marked: bool) -> list[str]:
    """The cells of a row; its first is bold where the table sets the row apart."""
    first, *rest = (escape(text) for text in row)
    return [f"**{first}**" if marked else first, *rest]


def _folded(table: Table, most: int | None) -> list[str]:
    lines = table_lines(table, most)
    if not lines:
        return []
    return ["", "<details>", f"<summary>{html.escape(printable(table.title))}</summary>", *lines, "", "</details>"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """One line in which nothing is markup: a name must not become a table column, a link, a formula or a tag, nor may
    a path call a person of that name (`@org`), which GitHub looks for once all markup is gone."""
    plain = re.sub(r"([\\`*_\[\]<>|~$]|:(?=//)|(?<=www)\.)", r"\\\1", one_line(text))
    return plain.replace("@", "@<!-- -->")


EXPORTER: Exporter = _Markdown()
