"""Published tables as runs: what a table says and nothing else, and one line for what is wrong with it."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness import cli
from harness.analysis.comparison import Comparison, choose_margins, compare_runs
from harness.analysis.comparison.published import NO_INTERVAL, log_estimate
from harness.analysis.estimates.intervals import LogEstimate, cell_estimate, t_quantile, throughput_interval, welch
from harness.analysis.estimates.verdict import Margins, judge
from harness.analysis.summary import summarise
from harness.errors import HarnessError, StorageError, UsageError
from harness.record import Run, list_runs, load_run, resolve_run
from harness.record.published import read_figures
from harness.report.comparison.notes import more_words, notes_of
from harness.report.comparison.words import row_notes
from harness.report.export.rows import cell_rows, to_csv
from harness.run.kinds.published_table import import_table
from tests.report.export.runs import REFERENCE, reference, results_with_reference
from tests.run.kinds.published import PUBLISHED
from tests.synthetic import failed, make_cell, make_run

HEADER = "strategy,replicas,model,images_per_s"
RATE = 11_122.3
"""Of the reference run's cell without a strategy and with batches of 32."""


def imported(folder: Path, text: str, **given: str) -> Run:
    table = folder / "table.csv"
    table.write_text(text, encoding="utf-8")
    return load_run(import_table(table, folder / "results", **given)[0])  # type: ignore[arg-type]


def test_the_published_table_becomes_a_run_without_trials(tmp_path: Path) -> None:
    path, count = import_table(PUBLISHED, tmp_path)
    run = load_run(path)
    assert run.trials == []
    assert run.manifest.imported is not None
    assert len(run.manifest.imported.figures) == count == 55
    first = run.manifest.imported.figures[0]
    assert first.keys == {
        "strategy": "parameter_server on cpu",
        "replicas": 1,
        "batch_size": 64,
        "batch_scope": "per_replica",
        "model": "InceptionV3",
        "data": "synthetic",
    }
    assert first.throughput_examples_per_s == 142.0
    assert first.hardware == "DGX-1 NVIDIA Tesla P100"
    assert (first.low, first.high, first.confidence, first.trials) == (None, None, None, None)
    assert run.manifest.imported.sources == ["tensorflow/docs site/en/r1/guide/performance/benchmarks.md"]


def test_list_show_and_report_say_that_it_was_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--results", str(tmp_path / "results")]
    assert cli.run(["import", str(PUBLISHED), "--name", "p100", *given]) == 0
    assert "55 published figures, not measured here" in capsys.readouterr().out
    [listing] = list_runs(tmp_path / "results")
    assert (listing.status, listing.cells, listing.trials) == ("imported", 55, 0)
    assert cli.run(["show", listing.run_id, *given]) == 0
    shown = capsys.readouterr().out
    assert "Published figures, not measured here" in shown
    assert "1,131" in shown
    page = tmp_path / "page.html"
    assert cli.run(["report", listing.run_id, "--output", str(page), *given]) == 0
    text = page.read_text(encoding="utf-8")
    assert "they were not measured here" in text
    assert "None has an interval" in text


def test_as_json_it_says_what_was_kept_and_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(f"{HEADER},status\nnone,1,m,5,ok\nmirrored,2,m,,crashed\n", encoding="utf-8")
    assert cli.run(["import", str(table), "--results", str(tmp_path / "results"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    [listing] = list_runs(tmp_path / "results")
    assert said == {"run_id": listing.run_id, "path": str(listing.path), "figures": 1, "left_out": 1}


def test_latest_is_what_was_measured_unless_there_is_nothing_else(tmp_path: Path) -> None:
    results = results_with_reference(tmp_path)
    path, _ = import_table(PUBLISHED, results)
    assert resolve_run("latest", results).name == "reference"
    only = tmp_path / "only"
    path, _ = import_table(PUBLISHED, only)
    assert resolve_run("latest", only) == path


def test_what_cells_exports_can_be_imported_and_compared_with_its_own_intervals(tmp_path: Path) -> None:
    results = results_with_reference(tmp_path)
    table = tmp_path / "cells.csv"
    assert cli.run(["export", str(results / "reference"), "--format", "cells", "--output", str(table)]) == 0
    path, count = import_table(table, results, source="the reference run")
    run = load_run(path)
    measured = [cell for cell in summarise(reference().manifest, reference().trials).cells if cell.measured]
    assert run.manifest.imported is not None
    assert (count, run.manifest.imported.left_out) == (len(measured), 36 - len(measured))
    for figure, cell in zip(run.manifest.imported.figures, measured, strict=True):
        assert cell.measured is not None
        estimate = log_estimate(figure).interval()
        assert estimate.low == pytest.approx(throughput_interval(cell.measured.sample).low, rel=1e-9)
    compared = compare_runs(reference(), run, choose_margins(None, unpaired=True), across_machines=True)
    assert len(compared.rows) == count
    assert {row.verdicts.wall.estimate.method for row in compared.rows if row.verdicts.wall.estimate} == {"Welch t"}
    assert all(row.verdicts.wall.estimate and row.verdicts.wall.estimate.mean == 0 for row in compared.rows)


def test_of_an_export_whose_work_is_counted_in_several_units_the_rows_in_examples_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = make_cell(model="gpt", data="text", tokens=64)
    for name, cells, read in (("mixed", [make_cell(), text], 1), ("tokens", [text], 0)):
        rows = cell_rows(summarise(*make_run(cells)))
        (tmp_path / f"{name}.csv").write_text(to_csv(rows), encoding="utf-8")
        code = cli.run(["import", str(tmp_path / f"{name}.csv"), "--results", str(tmp_path / "results")])
        assert code == (0 if read else 2)
    said = capsys.readouterr()
    assert "1 published figure, not measured here (1 row without a figure in examples/s left out): " in said.out
    assert said.err.count("\n") == 1
    assert (
        "tokens.csv: row 1: no column throughput_examples_per_s: its rates are in tokens/s, and examples/s" in said.err
    )
    [listing] = list_runs(tmp_path / "results")
    imported_run = load_run(listing.path).manifest.imported
    assert imported_run is not None
    assert [figure.keys["model"] for figure in imported_run.figures] == ["mnist_cnn"]


def test_a_figure_without_an_interval_is_undecided_and_none_is_made_up(tmp_path: Path) -> None:
    text = "strategy,replicas,model,batch_size,data,images_per_s\nnone,1,mnist_cnn,32,digits,99999\n"
    run = imported(tmp_path, text)
    compared = compare_runs(reference(), run, choose_margins(None, unpaired=True), across_machines=True)
    [row] = compared.rows
    assert row.verdicts.wall.verdict == "undecided"
    assert row.verdicts.wall.reason == f"B {NO_INTERVAL}"
    assert row.verdicts.wall.ratio is not None
    assert row.verdicts.wall.ratio.low is None
    assert (row.b.cell.label, row.b.cell.get("data")) == ("none ×1 b32 mnist_cnn digits", "digits")
    assert row.b.cell.get("optimizer") is row.b.cell.get("loop") is row.b.cell.get("mesh") is None
    assert any("was not measured here" in remark for remark in compared.remarks)


def beside_reference(folder: Path, figures: str) -> Comparison:
    """The reference run beside a table whose rows end with `figures`: rate, its ends, and trials."""
    header = "strategy,replicas,model,batch_size,data,images_per_s,low,high,trials"
    run = imported(folder, f"{header}\nnone,1,mnist_cnn,32,digits,{figures}\n")
    return compare_runs(reference(), run, choose_margins(None, unpaired=True), across_machines=True)


def said_of(comparison: Comparison) -> str:
    [row] = comparison.rows
    return " ".join((*row_notes(comparison, row), *notes_of(comparison), more_words(comparison, row)))


def test_a_figure_without_an_interval_is_not_to_be_measured_again(tmp_path: Path) -> None:
    compared = beside_reference(tmp_path, "99999,,,")
    assert compared.kind == "published"
    assert compared.rows[0].verdicts.wall.verdict == "undecided"
    assert not re.search("--trials|harness ab|at least|the least", said_of(compared))


def test_beside_a_published_interval_more_trials_are_asked_of_the_measured_side_alone(tmp_path: Path) -> None:
    compared = beside_reference(tmp_path, f"{RATE},{0.99 * RATE},{1.01 * RATE},30")
    [row] = compared.rows
    needed = row.verdicts.wall.blocks_needed
    assert row.verdicts.wall.verdict == "undecided"
    assert needed is not None
    assert row.a.measured is not None
    assert row.b.measured is not None
    own = cell_estimate(row.a.measured.sample)
    assert own.deviation is not None
    more = replace(own, count=needed, standard_error=own.deviation / math.sqrt(needed), degrees_of_freedom=needed - 1)
    there = LogEstimate(math.log(RATE), math.log(1.01 / 0.99) / 2 / t_quantile(29), 29, None, 30, "t")
    assert judge(welch(there, more), Margins()).verdict == "equivalent"
    said = said_of(compared)
    assert f"about {needed} trials of the measured side would decide it" in said
    assert f"(--trials {needed})" in said
    assert not re.search("both runs|a side|harness ab", said)


def test_what_a_wide_published_interval_leaves_open_no_number_of_trials_decides(tmp_path: Path) -> None:
    compared = beside_reference(tmp_path, f"{RATE},{0.8 * RATE},{1.25 * RATE},30")
    assert compared.rows[0].verdicts.wall.blocks_needed is None
    assert "no number of trials of the measured side up to 1,000 would decide it" in said_of(compared)


def test_a_wrong_cell_beside_a_figure_is_told_by_what_was_wrong(tmp_path: Path) -> None:
    measured = reference()
    ends = {0: ("crashed", "killed by signal 9", "build"), 1: ("wrong_result", "the sum is wrong", "check")}
    trials = [failed(t, *ends[t.block]) if t.block in ends else t for t in measured.trials]
    run = imported(tmp_path, "strategy,replicas,model,batch_size,data,images_per_s\nnone,1,mnist_cnn,32,digits,99999\n")
    margins = choose_margins(None, unpaired=True)
    [row] = compare_runs(replace(measured, trials=trials), run, margins, across_machines=True).rows
    assert row.verdicts.wall.reason == "A has no throughput: the sum is wrong"


def test_of_two_published_figures_nothing_is_asked_to_be_measured(tmp_path: Path) -> None:
    runs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        runs.append(imported(tmp_path / name, f"{HEADER},low,high,trials\nnone,1,m,5,4,6,3\n"))
    compared = compare_runs(*runs, choose_margins(None, unpaired=True))
    assert compared.rows[0].verdicts.wall.verdict == "undecided"
    assert not re.search("--trials|trials of|1,000", said_of(compared))


def test_a_published_figure_is_of_another_machine(tmp_path: Path) -> None:
    run = imported(tmp_path, "strategy,replicas,model,batch_size,hardware,images_per_s\nnone,1,mnist_cnn,32,A100,9\n")
    with pytest.raises(StorageError, match="was not measured here, but on A100; --across-machines"):
        compare_runs(reference(), run, choose_margins(None, unpaired=True))


def test_a_figure_is_of_the_defaults_of_what_its_table_has_no_column_for(tmp_path: Path) -> None:
    run = imported(tmp_path, "strategy,replicas,model,batch_size,data,images_per_s\nnone,1,mnist_cnn,32,digits,99999\n")
    [row] = compare_runs(reference(), run, choose_margins(None, unpaired=True), across_machines=True).rows
    assert (row.a.cell.get("batch_size"), row.a.cell.get("intra_op_threads")) == (32, 0), "and not of the whole machine"


def test_a_figure_that_could_be_several_cells_names_the_column_that_is_missing(tmp_path: Path) -> None:
    run = imported(tmp_path, f"{HEADER}\nnone,1,mnist_cnn,5\n")
    with pytest.raises(StorageError, match=r"could be 2 of the other run .* add the column batch_size"):
        compare_runs(reference(), run, choose_margins(None, unpaired=True), across_machines=True)


def test_tables_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    path, _ = import_table(PUBLISHED, tmp_path)
    with pytest.raises(StorageError, match="nothing in common"):
        compare_runs(reference(), load_run(path), choose_margins(None, unpaired=True), across_machines=True)


@pytest.mark.parametrize(
    "verb", [["export", "RUN"], ["compare", "RUN", "--along", "replicas"], ["sweep", "--resume", "RUN"]]
)
def test_what_needs_trials_says_that_there_are_none(
    tmp_path: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = import_table(PUBLISHED, tmp_path)
    arguments = [path.name if word == "RUN" else word for word in verb]
    assert cli.run([*arguments, "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "was imported" in said
    assert said.count("\n") == 1


BROKEN = {
    "no column throughput_examples_per_s": "strategy,replicas,model\nnone,1,m\n",
    r"row 1: unknown column 'modle'; did you mean 'model'\?": "strategy,replicas,modle,images_per_s\nnone,1,m,5\n",
    "row 1: column 'examples_per_s' says what another one says already": f"{HEADER},examples_per_s\nnone,1,m,5,5\n",
    r"row 3: replicas: given 'two', expected a whole number from 1": f"{HEADER}\nnone,1,m,5\nnone,two,m,5\n",
    r"row 2: replicas: given '0', expected": f"{HEADER}\nnone,0,m,5\n",
    r"row 2: replicas: given '9999999999999999999', expected": f"{HEADER}\nnone,9999999999999999999,m,5\n",
    r"row 2: throughput_examples_per_s: given '-5', expected a number above 0": f"{HEADER}\nnone,1,m,-5\n",
    r"row 2: throughput_examples_per_s: given 'nan', expected": f"{HEADER}\nnone,1,m,nan\n",
    r"row 2: throughput_examples_per_s: given 'inf', expected": f"{HEADER}\nnone,1,m,inf\n",
    r"row 2: throughput_examples_per_s: given '1e999', expected": f"{HEADER}\nnone,1,m,1e999\n",
    r"row 2: throughput_examples_per_s: given '1,000', expected .* no comma": f'{HEADER}\nnone,1,m,"1,000"\n',
    r"row 2: throughput_examples_per_s: is empty": f"{HEADER}\nnone,1,m,\n",
    r"row 2: strategy: is empty": f"{HEADER}\n ,1,m,5\n",
    r"row 2: has 3 fields, expected 4": f"{HEADER}\nnone,1,m\n",
    r"row 2: high: is empty, expected both ends": f"{HEADER},low,high\nnone,1,m,5,4,\n",
    r"row 2: .*the figure lies outside its own interval": f"{HEADER},low,high\nnone,1,m,5,6,7\n",
    r"row 2: confidence: given without low and high": f"{HEADER},confidence\nnone,1,m,5,0.9\n",
    r"row 2: confidence: given '95', expected less than 1": f"{HEADER},low,high,confidence\nnone,1,m,5,4,6,95\n",
    r"row 2: trials: given '1.5', expected a whole number": f"{HEADER},trials\nnone,1,m,5,1.5\n",
    r"row 2: xla: given 'perhaps', expected a valid boolean": f"{HEADER},xla\nnone,1,m,5,perhaps\n",
    r"row 2: batch_scope: given 'both', expected 'per_replica' or 'global'": f"{HEADER},batch_scope\nnone,1,m,5,both\n",
    r"row 2: model: holds a control character": f"{HEADER}\nnone,1,m\x1b[31m,5\n",
    r"row 2: model: 600 characters": f"{HEADER}\nnone,1,{'m' * 600},5\n",
    r"row 2: not valid CSV": f'{HEADER}\n"none,1,m,5\n',
    "holds no figure": f"{HEADER}\n",
}


@pytest.mark.parametrize("expected", BROKEN)
def test_a_broken_table_is_one_line_that_names_the_row_and_the_column(expected: str) -> None:
    with pytest.raises(UsageError, match=expected) as caught:
        read_figures(BROKEN[expected], "table.csv")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("table.csv: ")


def test_files_that_are_no_table_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / "x.csv"
    binary.write_bytes(b"strategy\n\xff\xfe\x00")
    for path, words in (
        (binary, "row 2: is not UTF-8"),
        (tmp_path, "cannot read"),
        (tmp_path / "no.csv", "cannot read"),
    ):
        with pytest.raises(HarnessError, match=words):
            import_table(path, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_name_with_markup_is_text_on_the_page(tmp_path: Path) -> None:
    from harness.report.tables.published import imported_page

    run = imported(tmp_path, f"{HEADER},source\nnone,1,<script>alert(1)</script>,5,<b>x</b>\n")
    page = imported_page(run.manifest)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;x" in page


def test_a_table_by_a_spreadsheet_is_read(tmp_path: Path) -> None:
    text = "\ufeffstrategy,replicas,model,images_per_s,trials,low,high\r\n\r\nnone,1,m,5,3,4,6\r\n,,,,,,\r\n"
    [figure], _ = read_figures(text.lstrip("\ufeff"), "t")
    assert (figure.trials, figure.low, figure.high, figure.confidence) == (3, 4.0, 6.0, 0.95)
    run = imported(tmp_path, text)
    assert run.manifest.imported is not None
    assert run.manifest.imported.figures == [figure]


def test_an_imported_table_is_laid_over_the_efficiencies_of_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"mirrored,{n},mnist,128,Mine,2025-01,{rate}\n" for n, rate in ((1, 100), (2, 150), (3, 170)))
    table = tmp_path / "own.csv"
    table.write_text(f"strategy,replicas,model,batch_size,hardware,date,images_per_s\n{rows}")
    path, _ = import_table(table, tmp_path / "results", source="a colleague")
    page = tmp_path / "page.html"
    command = ["report", str(REFERENCE), "--output", str(page), "--overlay"]
    assert cli.run([*command, str(path)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "mnist, mirrored, batch 128 a replica" in text
    assert "DGX-1" not in text, "the series of the package give way"
    assert '-switch" checked>' in text, "what was asked for is shown"
    for refused in (REFERENCE, import_table(_one_point(tmp_path), tmp_path / "results")[0]):
        assert cli.run([*command, str(refused)]) == 2
        assert capsys.readouterr().err.startswith("harness: --overlay: ")


def _one_point(folder: Path) -> Path:
    (folder / "point.csv").write_text(f"{HEADER}\nnone,1,m,5\n")
    return folder / "point.csv"


def test_the_reference_run_is_as_it_was() -> None:
    assert load_run(REFERENCE).manifest.imported is None
