"""A throughput's own interval is of the minutes in which it was measured; where one stands, that stands beside it."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.suite import MeasuredCell
from harness.analysis import summarise
from harness.analysis.batch import batch_curves
from harness.analysis.ranking import references_of
from harness.record.reading import Run
from harness.report.export import exporters
from harness.report.export.as_asv import _described, _named
from harness.report.figures.batch import batch_figure
from harness.report.figures.ranking import ranking_figure
from harness.report.notebook import SweepResult
from harness.report.page.report import render
from harness.report.tables.columns import SUMMARY_COLUMNS
from harness.report.tables.network import network_table
from harness.report.tables.sweep import batch_table, ranking_table, unproved_table
from harness.report.terminal.interim import so_far
from harness.report.terminal.run import run_text
from harness.report.words.answer import answers
from harness.report.words.brief import brief_lines
from harness.report.words.method import methods
from harness.report.words.text import IN_THESE_MINUTES, OWN_INTERVAL
from tests.networks import RATES, networked, on
from tests.synthetic import make_cell, make_run, unproved

CELLS = [
    *(make_cell("none", 1, batch, device="gpu") for batch in (32, 128)),
    *(make_cell("mirrored", 2, batch, device="gpu") for batch in (32, 128)),
    make_cell("central_storage", 2, 32, device="gpu"),
]
MANIFEST, TRIALS = make_run(
    CELLS, faults=False, change=lambda it: unproved(it) if it.cell.strategy == "central_storage" else it
)
SUMMARY = summarise(MANIFEST, TRIALS)
[WORK] = SUMMARY.workloads
NETWORKED = networked([on(text) for text in RATES])
DATA = SimpleNamespace(manifest=MANIFEST, trials=TRIALS, rank_unproved=False, path=Path(), results=Path("nowhere"))
OWN = re.compile(r"examples/s(?:</\w+>)? ± [\d.]+(?: |\N{NO-BREAK SPACE})%(?! in these minutes)")
"""Plus or minus behind a throughput, and nothing of when."""


def test_the_words_are_the_same_everywhere() -> None:
    assert IN_THESE_MINUTES in OWN_INTERVAL


def test_the_tables_of_throughputs_say_so_in_the_head_of_the_interval() -> None:
    curves = batch_curves([cell.trials for cell in WORK.cells], references_of([cell.trials for cell in WORK.cells]))
    for table in (
        ranking_table(WORK, SUMMARY.noise),
        unproved_table(WORK),
        batch_table(curves),
        network_table(NETWORKED),
    ):
        assert table.rows, table.title
        heads = [column.name for column in table.columns]
        assert heads.count(OWN_INTERVAL) == 1, table.title
        assert "95 % interval" not in heads
        assert heads.index(OWN_INTERVAL) == heads.index("examples/s") + 1


def test_headline_large_figure_and_sentences_say_so() -> None:
    [text] = answers(SUMMARY)
    for said in (text.headline, text.fastest, text.figures[0].certainty, *brief_lines(SUMMARY)[:1], *so_far(SUMMARY)):
        assert IN_THESE_MINUTES in said, said


@pytest.mark.parametrize("status", ["finished", "running"])
def test_no_plus_or_minus_of_a_throughput_stands_without_it(status: str) -> None:
    manifest = MANIFEST.model_copy(update={"status": status})
    summary = summarise(manifest, TRIALS)
    said = {
        "page": re.sub(r"<[^>]+>", "", render(manifest, TRIALS, summary)),
        "show": " ".join(run_text(manifest, TRIALS, summary, 200, False).split()),
        "markdown": exporters()["markdown"].export(SimpleNamespace(**{**vars(DATA), "manifest": manifest}), None) or "",
        "notebook": SweepResult(Run(Path(), manifest, TRIALS, False, False))._repr_html_(),
    }
    for where, text in said.items():
        assert IN_THESE_MINUTES in text, where
        assert not OWN.search(text), where


def test_figures_and_the_formula_say_so() -> None:
    cells = [cell.trials for cell in WORK.cells]
    batch = batch_figure(WORK, batch_curves(cells, references_of(cells)), "batch")
    ranking = ranking_figure(WORK, "ranking")
    assert batch is not None
    assert ranking is not None
    assert OWN_INTERVAL in batch.caption
    assert IN_THESE_MINUTES in ranking.svg
    throughput = next(method for method in methods(MANIFEST, TRIALS, SUMMARY) if method.figure == "Throughput X")
    assert IN_THESE_MINUTES in throughput.formula


def test_columns_of_csv_parquet_and_frames_mean_it() -> None:
    ends = [column for column in SUMMARY_COLUMNS if re.match(r"(throughput|step_time).*_(low|high)$", column.name)]
    assert len(ends) == 4
    assert all(column.meaning.endswith(f"95 % interval {IN_THESE_MINUTES}") for column in ends)
    others = [column for column in SUMMARY_COLUMNS if column.name.endswith(("_low", "_high")) and column not in ends]
    assert others
    assert not any(IN_THESE_MINUTES in column.meaning for column in others), "ratios do not feel it"


@pytest.mark.parametrize("name", ["github-action-bigger", "github-action-smaller", "pytest-benchmark"])
def test_what_goes_to_other_tools_says_so_of_every_cell(name: str) -> None:
    document = json.loads(exporters()[name].export(DATA, None) or "")
    entries = document["benchmarks"] if name == "pytest-benchmark" else document
    assert entries
    assert all(OWN_INTERVAL in json.dumps(entry, ensure_ascii=False) for entry in entries)


def test_asv_and_the_suite_say_so() -> None:
    for cell, named in zip(SUMMARY.cells, _named(SUMMARY.cells), strict=True):
        titles = [entry["pretty_name"] for entry in _described(named).values()]
        assert [IN_THESE_MINUTES in title for title in titles] == [True, False]
        own = tuple(trial for trial in TRIALS if trial.cell_id == cell.cell_id)
        info = MeasuredCell(Run(Path(), MANIFEST, TRIALS, False, False), cell, own).extra_info()
        assert info["interval_of_throughput"] == OWN_INTERVAL
