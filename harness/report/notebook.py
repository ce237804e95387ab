"""What `harness.sweep`, `harness.explain`, `harness.ab` and `harness.compare` give back: figures, frames, the answer as
HTML."""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis import Interval, RunSummary, summarise
from harness.analysis.collectives import of_collectives
from harness.analysis.comparison import Comparison
from harness.analysis.estimates.verdict import Verdict
from harness.analysis.explain import Explanation
from harness.analysis.tries import Try
from harness.record.reading import Run
from harness.report.comparison import renderer
from harness.report.comparison.base import Surface
from harness.report.comparison.table import comparison_table, narrowed
from harness.report.comparison.words import headline, sides_line, verdict_sentences
from harness.report.limits import known_rates, results_of
from harness.report.page.markup import PLAIN_MARK, body_of
from harness.report.step_parts import StepsExplained, explained
from harness.report.tables.cells import cell_frame
from harness.report.tables.collectives import known_collectives, latency_table
from harness.report.tables.engines import engines_table
from harness.report.tables.frames import comparison_frame, part_frame, trial_frame
from harness.report.tables.pipelines import stages_table
from harness.report.tables.sweep import ranking_table, told_of
from harness.report.tables.table import Table, noted_once
from harness.report.words.answer import answer_lines
from harness.spec.collective import COLLECTIVE
from harness.spec.pipeline import PIPELINE

if TYPE_CHECKING:
    import pandas as pd

_CALLS = {COLLECTIVE: "load_collectives", PIPELINE: "load_pipelines"}
"""By kind of work what of the package gives a row for each of its figures; of trainings `load_cells` does."""
_WIDTH = 100
"""Columns of a printed comparison."""


@dataclass(frozen=True)
class SweepResult:
    """A sweep that was measured. Printed it is its answer, in a notebook its answer and the ranking; of collectives
    what a reader of nccl-tests knows."""

    run: Run
    """The run as recorded: `manifest` and `trials`, typed."""

    @property
    def path(self) -> Path:
        """The folder of its records, which every verb of the command line takes."""
        return self.run.path

    @functools.cached_property
    def summary(self) -> RunSummary:
        """Everything that the report says: cells, rankings, answers, noise. HarnessError on figures that are none."""
        return summarise(self.run.manifest, self.run.trials)

    @property
    def answer(self) -> tuple[str, ...]:
        """The answer in sentences, as the command line prints it."""
        return answer_lines(self.summary)

    @property
    def cells(self) -> "pd.DataFrame":
        """A row a cell with its estimates, as `harness.load_cells`."""
        return cell_frame([self.run])

    @property
    def trials(self) -> "pd.DataFrame":
        """A row a trial, as `harness.load`."""
        return trial_frame(self.run.trials)

    def __str__(self) -> str:
        return "\n".join(self.answer)

    def _repr_html_(self) -> str:
        call = _CALLS.get(self.run.manifest.sweep.work, "load_cells")
        return "".join((*_paragraphs(self.answer), *_shown(self._tables(), _call(call, self.run))))

    def _tables(self) -> Iterator[Table]:
        """The tables of collectives; of each other work its ranking and what stands by it."""
        summary, rates = self.summary, known_rates(self.run, self.summary)
        yield from (*known_collectives(self.run, summary), latency_table(summary))
        for work in summary.workloads:
            if not of_collectives(work):
                yield ranking_table(work, summary.noise, rates=rates)
            yield from (told_of(work, table, summary) for table in (stages_table(work), engines_table(work)))


@dataclass(frozen=True)
class ExplainResult:
    """Steps that were taken apart. Printed it is the answer for each cell, in a notebook with the parts below,
    and with what was tried."""

    run: Run
    """The run as recorded: `manifest` and `trials`, typed."""

    @property
    def path(self) -> Path:
        """The folder of its records, which every verb of the command line takes."""
        return self.run.path

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Everything that is said of each cell, typed."""
        return self._found.explanations

    @property
    def tries(self) -> tuple[Try, ...]:
        """The levers that were tried, typed; none without `try_levers`."""
        return self._found.tries

    @property
    def answer(self) -> tuple[str, ...]:
        """What binds each cell's step, how near the machine's limits it is and which levers held, in sentences, as the
        command line prints them."""
        return tuple(self._found.lines)

    @property
    def parts(self) -> "pd.DataFrame":
        """A row a part of each cell's step, as `harness.load_parts`."""
        return part_frame([self.run])

    def __str__(self) -> str:
        return "\n".join(self.answer)

    def _repr_html_(self) -> str:
        return "".join((*_paragraphs(self.answer), *_shown(self._found.tables, _call("load_parts", self.run))))

    @functools.cached_property
    def _found(self) -> StepsExplained:
        return explained(self.run, results_of(self.run))


@dataclass(frozen=True)
class ComparisonResult:
    """What was compared, with its verdict. Printed it is as on the terminal, in a notebook the verdict comes first."""

    comparison: Comparison
    """Everything that is said of the two sides, typed."""

    @property
    def verdict(self) -> Verdict:
        """The worst of the rows."""
        return self.comparison.verdict

    @property
    def ratio(self) -> Interval | None:
        """Throughput of B over A with its 95 % interval; None where there are several comparisons, or no figure."""
        return self.comparison.rows[0].verdicts.wall.ratio if len(self.comparison.rows) == 1 else None

    @property
    def frame(self) -> "pd.DataFrame":
        """A row a comparison; `attrs` has the worst verdict, the margins and the remarks."""
        return comparison_frame(self.comparison)

    def __str__(self) -> str:
        return renderer("terminal").render(self.comparison, Surface(_WIDTH))

    def _repr_html_(self) -> str:
        said = [headline(self.comparison), *verdict_sentences(self.comparison), sides_line(self.comparison)]
        table = replace(narrowed(comparison_table(self.comparison)), note="")  # which is of columns left out
        return "".join((*_paragraphs(said), *_shown([table], "the attribute frame")))


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """A paragraph a line, the first in bold."""
    for number, line in enumerate(lines):
        yield f"<p>{escape(line)}</p>" if number else f"<p><strong>{escape(line)}</strong></p>"


def _call(name: str, run: Run) -> str:
    """How one calls the function of the package that gives every row of a run."""
    return f"harness.{name}({str(run.path)!r})"


def _shown(tables: Iterable[Table], whole: str) -> Iterator[str]:
    """Those that have rows, of which all are in `whole`; what is to be noted of several stands below the last."""
    for table in noted_once([table for table in tables if table.rows]):
        yield _html(table, whole)


def _html(table: Table, whole: str) -> str:
    """The rows that a page shows, with the table's title above and where the others are and its note below; text stays
    text."""
    heads = "".join(f"<th>{escape(column.name)}</th>" for column in table.columns)
    head, body = f"<thead><tr>{heads}</tr></thead>", f"<tbody>{body_of(table, PLAIN_MARK)}</tbody>"
    more = f"{table.left_out} {whole}." if table.left_out else ""
    below = "".join(f"<p>{escape(text)}</p>" for text in (more, table.note) if text)
    return f"<table><caption>{escape(table.title)}</caption>{head}{body}</table>{below}"
