"""The sentence that says why a step is not faster."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.explain import PARTS, explanations_of
from harness.analysis.tries import tries_of
from harness.record import Run
from harness.record.explain import ExplainPlan, TryRecord
from harness.record.reading import load_run
from harness.report.comparison import Surface
from harness.report.figures import Picture, parts_figure
from harness.report.kinds import PageRequest, presentation_of
from harness.report.tables.explain import explain_lines, explain_tables
from harness.report.tables.tries import try_lines
from tests.comparisons import ab_run, stored
from tests.explained import RATIOS, STEADY, explain_run

SERVED = {"whole": 1.0, "no_input": 0.95, "no_pull": 0.8, "no_push": 0.6, "forward_backward": 0.35, "forward": 0.1}
UNEXPLAINED = RATIOS | {"forward_backward": 0.4, "alone": 0.3}
QUIET = dict.fromkeys(["whole", "no_input", "no_reduction", "no_update", "forward_backward"], 1.0)


def said(ratios: Mapping[str, float] = RATIOS, noise: Sequence[float] = STEADY) -> str:
    return explain_lines(explanations_of(explain_run(ratios, noise)))[0]


def test_what_binds_a_step_is_said_with_how_much_there_is_to_win_and_what_to_try() -> None:
    text = said()
    assert "is communication-bound: 30.0 % [" in text
    assert "at most 1.4" in text
    assert "--cross-device-op" in text


def test_servers_have_a_pull_and_a_push_in_words_in_the_figure_and_beside_them_how_stale_updates_are() -> None:
    found = explanations_of(explain_run({**SERVED, "empty": 0.1, "alone": 0.5}, at_once=2, passed={0: 1, 1: 3}))
    first, second = explain_lines(found)
    assert "is push-bound: 40.0 % [" in first
    assert "0.75 [0.75 – 0.75] updates of other workers are made" in second
    figure = parts_figure(found, "parts")
    assert figure is not None
    assert "pull of weights 20 %" in figure.description
    assert "communication" not in figure.description
    assert ">push of gradients<" in figure.svg


def test_a_worker_that_the_others_always_wait_for_is_named_with_how_slow_it_is_and_where_that_shows() -> None:
    _, line = explain_lines(explanations_of(explain_run(computes=[0.001, 0.002])))
    assert "worker 1 is always slow" in line
    assert "2.00× [2.00 – 2.00] as long" in line
    assert "in contention and compute, not in wait" in line


def test_where_a_trace_and_the_arms_disagree_is_said_with_both(tmp_path: Path) -> None:
    parts = {"compute": 0.5, "update": 0.05, "communication": 0.2, "input": 0.1, "rest": 0.15}
    run = explain_run(traced=parts)
    text = presentation_of(run.manifest).text(run, tmp_path, Surface(width=200))
    assert "one traced trial disagrees with the arms: communication 20.0 % where the arms have 30.0 % [" in text
    assert "The same read from one trace" in text
    assert "look at them: tensorboard" in text
    presentation_of(run.manifest).write_page(run, PageRequest(tmp_path / "page.html", tmp_path))
    assert "tensorboard" not in (tmp_path / "page.html").read_text()  # a folder of one machine
    agrees = explain_run(traced={**parts, "communication": 0.3, "rest": 0.05})
    assert "one traced trial agrees with the arms" in explain_lines(explanations_of(agrees))[1]


def test_a_step_that_computes_is_told_that_nothing_else_takes_a_tenth() -> None:
    text = said(QUIET | {"forward": 0.3, "empty": 0.02, "alone": 0.98})
    assert "is compute-bound" in text
    assert "nothing else takes 10%" in text


def test_a_share_that_rounds_to_nothing_has_no_sign() -> None:
    found = explanations_of(explain_run(RATIOS | {"no_update": 1.0002}, noise=(0.0, 0.0001, -0.0001)))
    cells = [text for table in explain_tables(found) for row in table.rows for text in row]
    assert "0.0 %" in cells
    assert not any(re.search(r"-0\.0( |$)", text) for text in cells)


def test_several_parts_are_all_named() -> None:
    text = said(RATIOS | {"no_input": 0.8, "no_reduction": 0.8})
    assert "bound by several parts" in text
    assert "input 20" in text
    assert "communication 20" in text


def test_where_nothing_is_decided_the_parts_that_may_count_are_named_with_their_intervals() -> None:
    text = said(QUIET | {"forward": 0.3, "empty": 0.13, "alone": 0.98}, [0.1, -0.1, 0.12, -0.12, 0.0])
    assert ": undecided. Of its step" in text
    [count] = re.findall(r"; about --trials (\d+) would tell whether any takes 10%$", text)
    assert 5 < int(count) < 40
    assert said(QUIET, [0.1]).endswith("; more --trials would tell whether any takes 10%")


def test_what_may_bind_the_step_and_is_not_known_is_named() -> None:
    computes = QUIET | {"forward": 0.3, "empty": 0.02, "alone": 0.98}
    refused, why = explain_lines(explanations_of(explain_run(computes, crashed={"no_reduction": "it sums"})))
    assert refused.endswith(": undecided, since communication could not be told, for lack of 'no_reduction'")
    assert why.endswith("was unsupported: it sums")
    text = said(computes | {"forward_backward": 0.62, "alone": 0.6})
    assert re.search(r": undecided, since 38\.\d % \[[^]]+\] are unexplained$", text)
    assert re.search(r"is communication-bound: .* fast; 1\d\.\d % \[[^]]+\] are unexplained\. Try", said(UNEXPLAINED))
    beside = explain_lines(explanations_of(explain_run(crashed={"empty": "it computes"})))[0]
    assert "as fast; dispatch could not be told, for lack of 'empty'; compute could not be told" in beside


def test_an_arm_that_gave_nothing_is_named_with_its_reason() -> None:
    lines = explain_lines(explanations_of(explain_run(crashed={"empty": "it computes 1 MatMul"})))
    assert any("'empty'" in line and "it computes 1 MatMul" in line for line in lines)


def test_the_table_has_a_row_for_each_part_and_marks_what_binds() -> None:
    [table] = explain_tables(explanations_of(explain_run()))
    names = [row[0] for row in table.rows]
    assert names[:7] == ["input", "communication", "update", "dispatch", "contention", "compute", "unexplained"]
    assert [names[number] for number in table.marked] == ["communication"]


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


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_a_run_that_has_not_finished_has_shares_and_is_not_judged(status: str) -> None:
    run = explain_run()
    found = explanations_of(replace(run, manifest=run.manifest.model_copy(update={"status": status})))
    [line] = explain_lines(found)
    assert ": not judged before the run has finished" in line
    assert "communication 30.0 % [" in line
    assert "-bound" not in line
    assert "Try " not in line
    assert found[0].bound_by == "not_judged"
    [table] = explain_tables(found)
    assert not table.marked


def drawn(ratios: Mapping[str, float] = RATIOS) -> Picture:
    found = parts_figure(explanations_of(explain_run(ratios)), "parts")
    assert found is not None
    return found


def test_the_figure_tells_each_part_in_words_and_hidden_communication_apart() -> None:
    text = drawn().description
    assert "communication, waited for 30 %" in text
    assert "communication, hidden 7" in text
    assert "compute 40 %" in text


def test_the_figures_csv_has_each_part_in_seconds_and_as_a_share_with_its_ends() -> None:
    rows = {row["part"]: row for row in drawn().data}
    assert set(rows) == {*PARTS, "unexplained", "forward", "backward", "hidden"}
    of = rows["communication"]
    assert of["seconds"] == pytest.approx(of["share"] * of["step_time_s"])
    assert of["share_low"] < of["share"] < of["share_high"]
    assert of["bound_by"] == "communication"


def test_what_is_below_0_is_not_drawn_and_named() -> None:
    assert "below 0: input." in drawn(RATIOS | {"no_input": 1.1}).caption
    assert "below 0" not in drawn(RATIOS | {"no_update": 0.97}).caption


def test_replicas_that_wait_for_each_other_longer_than_the_sums_take_have_no_strip() -> None:
    assert "narrow strip" in drawn().caption
    assert "narrow strip" not in drawn(RATIOS | {"reduction": 0.2}).caption


def test_a_run_without_a_complete_block_has_no_figure() -> None:
    assert parts_figure(explanations_of(explain_run(crashed={"whole": "no room"})), "parts") is None


def test_the_figure_is_on_the_page_below_what_is_said(tmp_path: Path) -> None:
    run = explain_run()
    presentation_of(run.manifest).write_page(run, PageRequest(tmp_path / "page.html", tmp_path))
    page = (tmp_path / "page.html").read_text()
    told, figure, table = map(page.index, ("is communication-bound", "Stacked bars of the parts", "<table"))
    assert told < figure < table
