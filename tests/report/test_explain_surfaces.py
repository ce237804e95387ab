"""A run of `explain` where others read it: its tries, its JSON, its exports, from Python."""

import csv
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness.analysis.explain import explanations_of
from harness.analysis.tries import tries_of
from harness.record import Run
from harness.record.explain import ExplainPlan, TryRecord
from harness.record.limits import keep_sheet
from harness.record.reading import load_run
from harness.report.comparison import Surface
from harness.report.export.as_markdown import escape
from harness.report.kinds import PageRequest, presentation_of
from harness.report.kinds.base import OF_TRIALS
from harness.report.notebook import ExplainResult
from harness.report.tables.explain import explain_lines, part_rows
from harness.report.tables.tries import try_lines
from tests.comparisons import ab_run, as_run, stored
from tests.explained import QUIET, RATIOS, explain_run
from tests.limits import MACHINE, limits


def tried(verdicts: Mapping[str, Sequence[float]], results: Path) -> Run:
    """A run of `explain` on disk with a try for each setting, whose `ab` has these log ratios."""
    run = explain_run()
    cell = run.manifest.cells[0].cell_id
    records = [
        TryRecord(cell_id=cell, part="communication", setting=setting, run_id=f"ab-{number}")
        for number, setting in enumerate(verdicts)
    ]
    for record, differences in zip(records, verdicts.values(), strict=True):
        stored(ab_run(differences, run_id=str(record.run_id)), results)
    failed = TryRecord(cell_id=cell, part="communication", setting="xla=true", reason="no compiler")
    plan = run.manifest.part(ExplainPlan).model_copy(update={"tries": [*records, failed]})
    manifest = run.manifest.model_copy(update={"explain": plan})
    return load_run(stored(replace(run, manifest=manifest), results))


FASTER, ALIKE = (0.1, 0.11, 0.09, 0.1), (0.0, 0.001, -0.001, 0.0005)


def test_a_run_says_which_of_its_tries_held_and_names_their_runs(tmp_path: Path) -> None:
    run = tried({"cross_device_op=nccl": FASTER, "batch_size=64": ALIKE}, tmp_path)
    text = presentation_of(run.manifest).text(run, tmp_path, Surface(width=200))
    assert "Of 2 levers that could be measured 1 held: cross_device_op=nccl on mirrored ×2 b32 (faster by 10" in text
    rows = [line for line in text.splitlines() if "ab-" in line or "no compiler" in line]
    assert ["faster by" in rows[0], "equivalent" in rows[1], "not measured: no compiler" in rows[2]] == [True] * 3
    from_python = ExplainResult(run)
    assert text.splitlines()[1:3] == list(from_python.answer)
    assert [one.faster for one in from_python.tries] == [True, False, False]
    assert ">not measured: no compiler</td>" in from_python._repr_html_()
    head, *said = (presentation_of(run.manifest).exporters()["markdown"].export(run, None) or "").splitlines()
    assert head == "# explain-run"
    assert {f"- {escape(line)}" for line in from_python.answer} < set(said)
    assert [line for line in said if line.startswith("## ")][-1] == "## What was tried"
    assert "not measured: no compiler" in said[-3]


def test_where_no_try_held_that_is_said(tmp_path: Path) -> None:
    run = tried({"batch_size=64": ALIKE}, tmp_path)
    assert try_lines(tries_of(run, tmp_path)) == ["Of 1 lever that could be measured none held."]


def test_a_try_whose_run_is_gone_is_not_measured_and_says_so(tmp_path: Path) -> None:
    run = tried({"batch_size=64": ALIKE}, tmp_path)
    shutil.rmtree(tmp_path / "ab-0")
    [first, _] = tries_of(run, tmp_path)
    assert first.verdict == "not measured"
    assert "there is no run at" in (first.reason or "")


def test_the_tries_are_in_its_json_and_on_its_page(tmp_path: Path) -> None:
    run = tried({"batch_size=64": FASTER}, tmp_path)
    kind = presentation_of(run.manifest)
    first, second = json.loads(kind.as_json(run, tmp_path))["tries"]
    assert (first["setting"], first["verdict"], first["run_id"]) == ("batch_size=64", "faster", "ab-0")
    assert first["low"] < first["ratio"] < first["high"]
    assert (second["verdict"], second["ratio"], second["reason"]) == ("not measured", None, "no compiler")
    kind.write_page(run, PageRequest(tmp_path / "page.html", tmp_path))
    assert "What was tried" in (tmp_path / "page.html").read_text()


def test_json_and_csv_have_what_the_sentence_says(tmp_path: Path) -> None:
    run = explain_run(crashed={"empty": "it computes"})
    kind = presentation_of(run.manifest)
    [cell] = json.loads(kind.as_json(run, tmp_path))["cells"]
    assert cell["untold"] == {"dispatch": ["empty"], "compute": ["empty"]}
    assert (cell["blocks"], cell["of_blocks"], cell["trials_needed"]) == (5, 5, None)
    assert cell["advice"].startswith("another --bytes-per-pack")
    [sent] = [part for part in cell["parts"] if part["name"] == "communication"]
    assert sent["most_gain"] == pytest.approx(1 / (1 - sent["high"]))
    rows = {row["part"]: row for row in part_rows(explanations_of(run))}
    assert (rows["dispatch"]["lacks"], rows["compute"]["lacks"]) == ("empty", "empty")
    assert "share" not in rows["dispatch"]
    assert rows["communication"]["advice"] == cell["advice"]
    assert rows["communication"]["most_gain"] == sent["most_gain"]
    assert {row["advice"] for row in rows.values() if row.get("advice")} == {cell["advice"]}
    undecided = explain_run(QUIET | {"forward": 0.3, "empty": 0.13, "alone": 0.98}, [0.1, -0.1, 0.12, -0.12, 0.0])
    [cell] = json.loads(kind.as_json(undecided, tmp_path))["cells"]
    assert f"about --trials {cell['trials_needed']} would" in explain_lines(explanations_of(undecided))[0]
    assert {row["trials_needed"] for row in part_rows(explanations_of(undecided))} == {cell["trials_needed"]}
    assert cell["advice"] is None


def test_json_and_csv_have_how_near_the_limit_the_input_is(tmp_path: Path) -> None:
    run = explain_run(RATIOS | {"only_input": 1.0})
    [cell] = json.loads(presentation_of(run.manifest).as_json(run, tmp_path))["cells"]
    assert (cell["input_limit"], cell["bound_by"]) == ("now", "input")
    assert cell["headroom"]["low"] < cell["headroom"]["value"] < cell["headroom"]["high"] < 1
    for row in part_rows(explanations_of(run)):
        assert row["input_is_the_limit"] == "yes"
        assert [row[f"input_over_model{end}"] for end in ("", "_low", "_high")] == list(cell["headroom"].values())
    [of_several] = json.loads(presentation_of(run.manifest).as_json(explain_run(), tmp_path))["cells"]
    assert (of_several["input_limit"], of_several["headroom"]) == (None, None)


def test_it_is_exported_trial_by_trial_and_window_by_window_each_with_the_instrument_that_it_is_of() -> None:
    run = explain_run()
    kind = presentation_of(run.manifest)
    assert {*OF_TRIALS, "parts", "markdown"} == kind.exporters().keys()
    windows = csv.DictReader((kind.exporters()["windows"].export(run, None) or "").splitlines())
    assert {row["side"] for row in windows} == set(RATIOS)


def counted() -> Run:
    """A run of the machine of `limits` whose steps' operations are known."""
    work = {"flops_per_step": 40_000_000, "bytes_per_step": 1_000_000}
    trials = [
        trial.model_copy(
            update={
                "executed": trial.executed.model_copy(update=work),
                "resources": trial.resources.model_copy(update={"physical_devices": 1, "intra_op_threads": 1}),
            }
        )
        for trial in explain_run().trials
    ]
    return as_run(explain_run().manifest, trials, "explain-run", {"machine.id": MACHINE})


def test_how_near_the_machines_limit_a_step_is_is_said_where_limits_were_measured(tmp_path: Path) -> None:
    run = counted()
    kind, page = presentation_of(run.manifest), tmp_path / "page.html"
    words = "of what 1 thread can compute in float32."
    assert words not in kind.text(run, tmp_path, Surface(width=200))
    assert json.loads(kind.as_json(run, tmp_path))["limits"] == []
    keep_sheet(tmp_path, limits())
    [line] = [line for line in kind.text(run, tmp_path, Surface(width=200)).splitlines() if words in line]
    [row] = json.loads(kind.as_json(run, tmp_path))["limits"]
    assert line.startswith(f"mirrored ×2 b32 comes to {100 * row['share_of_limit']:.3g} %")
    kind.write_page(run, PageRequest(page, tmp_path))
    assert words in page.read_text()


def test_a_cells_figures_and_how_near_its_limit_it_is_are_those_of_its_whole_steps_however_it_is_read(
    tmp_path: Path,
) -> None:
    keep_sheet(tmp_path, limits())
    path = stored(counted(), tmp_path)
    run = harness.read(path)
    kind = presentation_of(run.manifest)
    [row] = json.loads(kind.as_json(run, tmp_path))["limits"]
    assert kind.text(run, tmp_path, Surface(width=200)).splitlines()[1:3] == list(ExplainResult(run).answer)
    assert harness.load_limits(path, results=tmp_path)["share_of_limit"].tolist() == [row["share_of_limit"]]
    summary = harness.summary(path)
    [cell] = summary.cells
    assert cell.measured is not None
    assert (summary.trials, dict(summary.counts)) == (summary.planned, {"ok": 1})
    assert harness.load_cells(path)["step_time_s"].tolist() == [cell.measured.step_time_s.value]
