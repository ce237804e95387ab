"""The sentence that says why a step is not faster."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.explain import explanations_of
from harness.analysis.parts import PARTS
from harness.record.explain import ExplainPlan
from harness.record.manifest import LeftOutRecord
from harness.record.trial import TraceRecord
from harness.report.comparison import Surface
from harness.report.figures import Picture, parts, parts_figure
from harness.report.figures.artists import Axes
from harness.report.figures.layout import bar_ends
from harness.report.kinds import PageRequest, presentation_of
from harness.report.tables.explain import advised, explain_lines, explain_tables, part_rows
from tests.explained import QUIET, RATIOS, STEADY, explain_run, with_parts

SERVED = {"whole": 1.0, "no_input": 0.95, "no_pull": 0.8, "no_push": 0.6, "forward_backward": 0.35, "forward": 0.1}
UNEXPLAINED = RATIOS | {"forward_backward": 0.4, "alone": 0.3}


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
    assert line.endswith("in contention, or in compute where one replica by itself was as slow, and not in wait")


def test_where_a_trace_and_the_arms_disagree_is_said_with_both(tmp_path: Path) -> None:
    parts = {"compute": 0.5, "update": 0.05, "communication": 0.2, "input": 0.1, "rest": 0.15}
    run = explain_run(traced=parts)
    text = presentation_of(run.manifest).text(run, tmp_path, Surface(width=200))
    assert "one traced trial disagrees with the arms: communication 20.0 % where the arms have 30.0 % [" in text
    assert "The same read from one trace" in text
    assert "look at them: tensorboard" in text
    presentation_of(run.manifest).write_page(run, PageRequest(tmp_path / "page.html", tmp_path))
    assert "tensorboard" not in (tmp_path / "page.html").read_text()  # a folder of one machine


AGREES = {"compute": 0.5, "update": 0.05, "communication": 0.3, "input": 0.1, "rest": 0.05}


@pytest.mark.parametrize(
    ("traced", "noise", "words"),
    [
        (AGREES, STEADY, "one traced trial agrees with the arms within their intervals"),
        (AGREES, STEADY[:1], "one traced trial is beside the arms, which have no intervals of one block"),
        (
            {"compute": 0.8, "update": 0.05, "input": 0.1, "rest": 0.05},
            STEADY,
            "one traced trial can be compared by its input alone, which is within the arms' interval",
        ),
        ({}, STEADY, "one trial was traced, and its profile tells no part of the step that the arms tell"),
    ],
)
def test_a_trace_is_said_to_agree_only_where_intervals_are_known_and_with_what_can_be_compared(
    traced: Mapping[str, float], noise: Sequence[float], words: str
) -> None:
    assert explain_lines(explanations_of(explain_run(noise=noise, traced=traced)))[1].endswith(f": {words}")
    assert "trace" not in "".join(explain_lines(explanations_of(explain_run())))


def test_a_trace_that_was_asked_for_and_is_not_there_has_its_reason_everywhere(tmp_path: Path) -> None:
    failed = TraceRecord(steps=5, reason="the profiler cannot run: busy")
    for read, words in (
        (None, "no trial was traced, since the profiler cannot run: busy"),
        (AGREES, "one traced trial agrees with the arms within their intervals. The trace was not kept: the profiler"),
    ):
        of_first = {"trace": failed.model_copy(update={"parts": read})}
        whole = explain_run()
        run = replace(whole, trials=[whole.trials[0].model_copy(update=of_first), *whole.trials[1:]])
        assert whole.trials[0].side == "whole"
        kind = presentation_of(run.manifest)
        kind.write_page(run, PageRequest(tmp_path / "page.html", tmp_path))
        for told in (kind.text(run, tmp_path, Surface(width=200)), (tmp_path / "page.html").read_text()):
            assert words in told
        [cell] = json.loads(kind.as_json(run, tmp_path))["cells"]
        assert cell["trace"] == {"path": None, "reason": failed.reason}


def test_a_pipeline_that_cannot_keep_up_is_said_to_be_the_limit_before_anything_else_can_be_won() -> None:
    answer, beside = explain_lines(explanations_of(explain_run(RATIOS | {"only_input": 1.0})))
    assert "is input-bound: 10.0 % [" in answer
    assert "until its pipeline is faster nothing else can be won" in answer
    assert "--prefetch" not in answer, "batches ahead make no pipeline faster"
    assert "input is the limit now, at 0.9" in beside
    assert beside.endswith("--cut source,decode,cache,shuffle says which stage that is")


def test_a_pipeline_that_keeps_up_is_told_with_the_rate_at_which_it_would_not() -> None:
    answer, beside = explain_lines(explanations_of(explain_run(RATIOS | {"only_input": 0.45})))
    assert "communication-bound" in answer
    assert "input is the limit at 2.0" in beside
    assert beside.endswith("the current rate")


def test_a_step_that_was_faster_than_its_pipeline_says_on_what_and_what_would_show_the_wait() -> None:
    _, beside = explain_lines(explanations_of(explain_run(RATIOS | {"only_input": 1.2})))
    assert "input is the limit now, at 0.75" in beside
    assert "on batches that waited since the turns of others: a longer --window shows it" in beside


def test_a_step_that_waits_though_its_pipeline_keeps_up_is_told_by_what() -> None:
    waits = QUIET | {"no_input": 0.8, "forward_backward": 0.8, "forward": 0.3, "empty": 0.02, "alone": 0.78}
    answer, beside = explain_lines(explanations_of(explain_run(waits | {"only_input": 0.4})))
    assert "is input-bound: 20.0 % [" in answer
    assert "nothing else" not in answer
    assert "--prefetch" in answer
    assert beside.endswith("cores taken from the step, bursts, or bringing batches to devices")


def test_a_step_that_computes_is_told_that_nothing_else_takes_a_tenth() -> None:
    text = said(QUIET | {"forward": 0.3, "empty": 0.02, "alone": 0.98})
    assert "is compute-bound" in text
    assert "nothing else takes 10%" in text


def test_a_dispatch_that_several_steps_in_one_call_do_not_save_is_said_to_bind_nothing() -> None:
    called = QUIET | {"forward": 0.3, "empty": 0.3, "alone": 0.98, "in_one_call": 0.97}
    text = said(called)
    assert re.search(
        r"is compute-bound: .*, and nothing else but dispatch takes 10%; dispatch by itself takes 30\.\d % \[[^]]+\], "
        r"but several steps in one call save at most 3\.\d %\. Try --precision",
        text,
    )
    assert "× as fast" not in text
    update = said(called | {"no_update": 0.7})
    assert "is update-bound" in update
    assert "several steps in one call save at most 3" in update
    assert "--steps-per-execution" not in update


def test_a_step_that_several_in_one_call_make_faster_is_bound_by_dispatch_and_the_hosts_row_is_marked() -> None:
    found = explanations_of(explain_run(QUIET | {"forward": 0.3, "empty": 0.02, "alone": 0.98, "in_one_call": 0.7}))
    told = r" is dispatch-bound: 30\.\d % .* is what each step is faster by .* without that at most 1\.4\d× as fast\."
    assert re.search(rf"{told} Try several steps a call \(--steps-per-execution\), ", *explain_lines(found))
    _, within = explain_tables(found)
    assert [within.rows[number][0] for number in within.marked] == ["host"]


def test_parts_that_overlap_are_said_to() -> None:
    text = said(QUIET | {"forward": 0.3, "empty": 0.02, "forward_backward": 1.45, "alone": 1.43})
    assert re.search(
        r": undecided, since parts overlap: together they take 145\.\d % of the step \(-45\.\d % \[[^]]+\] are "
        r"unexplained\)$",
        text,
    )
    [found] = explanations_of(explain_run())
    [reaches] = explain_lines([with_parts(found, unexplained=(-0.02, -0.12, 0.08))])
    assert "; -2.0 % [-12.0 – 8.0 %] are unexplained, so that parts may overlap. Try" in reaches
    [below] = explain_lines([with_parts(found, input=(-0.2, -0.3, -0.1))])
    assert "; input is -20.0 % [-30.0 – -10.0 %], below 0, so that parts overlap. Try" in below


def test_a_share_that_rounds_to_nothing_has_no_sign() -> None:
    found = explanations_of(explain_run(RATIOS | {"no_update": 1.0002}, noise=(0.0, 0.0001, -0.0001)))
    cells = [text for table in explain_tables(found) for row in table.rows for text in row]
    assert "0.0 %" in cells
    assert not any(re.search(r"-0\.0( |$)", text) for text in cells)


ADDED_UP = (
    "another --bytes-per-pack, another --cross-device-op, or a larger --batch-size (as much is added up for more)"
)


def test_several_parts_are_all_named_and_each_has_its_advice() -> None:
    found = explanations_of(explain_run(RATIOS | {"no_input": 0.799, "no_reduction": 0.8}))
    [text] = explain_lines(found)
    assert "bound by several parts" in text
    assert "input 20" in text
    assert "communication 20" in text
    assert text.endswith(
        f". For input try more batches ahead (--prefetch); for communication try {ADDED_UP}; for contention try more "
        "cores for each."
    )
    advice = {row["part"]: row["advice"] for row in part_rows(found) if row["advice"]}
    assert list(advice) == ["input", "communication", "contention"]
    assert advice["communication"] == ADDED_UP
    assert f". {advised(found[0])}." in text.replace(". For", ". for")


def test_parts_of_which_the_same_is_advised_have_it_once_and_those_of_which_nothing_is_are_left_out() -> None:
    served = explanations_of(explain_run({**SERVED, "empty": 0.1, "alone": 0.5}, at_once=2))
    [both] = [with_parts(one, pull=(0.4, 0.3, 0.5), push=(0.4, 0.3, 0.5)) for one in served]
    words = advised(both) or ""
    assert words.startswith("for pull and push try a larger --batch-size")
    assert words.count("more servers (--ps)") == 1
    [found] = explanations_of(explain_run(RATIOS | {"no_input": 0.799, "no_reduction": 0.8}))
    fed = replace(found, input=("Synthetic", "OnDevices"))
    assert (advised(fed) or "").startswith(f"for communication try {ADDED_UP}; for contention try ")


def test_where_nothing_is_decided_the_parts_that_may_count_are_named_with_their_intervals() -> None:
    text = said(QUIET | {"forward": 0.3, "empty": 0.13, "alone": 0.98}, [0.1, -0.1, 0.12, -0.12, 0.0])
    assert ": undecided. Of its step" in text
    [count] = re.findall(r"; about --trials (\d+) would tell whether any takes 10%$", text)
    assert 5 < int(count) < 40
    assert said(QUIET, [0.1]).endswith("; more --trials would tell whether any takes 10%")
    [found] = explanations_of(explain_run(QUIET | {"forward": 0.3, "empty": 0.02, "alone": 0.98}))
    certain = with_parts(found, input=(0.12, 0.118, 0.122), communication=(0.16, -0.007, 0.327))
    [text] = explain_lines([certain])
    assert re.search(
        r" take communication \[-0\.7 – 32\.7 %\] beside input 12\.0 % \[11\.8 – 12\.2 %\]; about --trials \d would",
        text,
    )
    [near] = explain_lines([with_parts(found, communication=(0.099, 0.06, 0.138))])
    assert near.endswith("; communication: too near 10% for such a scatter, --trials 100 would not tell")


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
    table, within = explain_tables(explanations_of(explain_run()))
    names = [row[0] for row in table.rows]
    assert names == ["input", "communication", "update", "dispatch", "contention", "compute", "unexplained"]
    assert [names[number] for number in table.marked] == ["communication"]
    assert table.note.endswith("; 5 blocks. They add up to it.")
    assert [row[0] for row in within.rows] == ["forward", "backward", "hidden"]
    assert sum(float(row[2].removesuffix(" %")) for row in table.rows) == pytest.approx(100, abs=0.4)


def test_the_table_says_what_is_missing_and_of_how_many_blocks_it_is() -> None:
    table, _ = explain_tables(explanations_of(explain_run(crashed={"empty": "it computes"})))
    assert "unexplained" not in [row[0] for row in table.rows]
    assert table.note.endswith(
        "; 5 blocks. They do not add up to it without dispatch and compute, which could not be told."
    )
    fewer, _ = explain_tables(explanations_of(explain_run(crashed={"empty": "no room"}, crashes=range(1, 2))))
    assert "; 4 of 5 blocks. They add up" in fewer.note
    all_of, within = explain_tables(explanations_of(explain_run(crashed={"forward": "no room"}, crashes=range(1, 2))))
    assert "; 5 blocks. They add up" in all_of.note
    assert within.note.endswith(" Of 5 blocks these have forward 4 and backward 4.")


def test_forward_and_backward_are_within_the_parts_that_the_step_has() -> None:
    run = explain_run({name: share for name, share in RATIOS.items() if name not in ("no_reduction", "alone")})
    plan = run.manifest.part(ExplainPlan)
    single = plan.model_copy(update={"families": [plan.families[0].model_copy(update={"alone": None})]})
    alone = replace(run, manifest=run.manifest.model_copy(update={"explain": single}))
    for of, words in ((alone, "dispatch and compute"), (explain_run(), "dispatch, contention and compute")):
        _, table = explain_tables(explanations_of(of))
        assert {row[-1] for row in table.rows if row[0] == "forward"} == {f"forward, within {words}"}


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
    assert not any(table.marked for table in explain_tables(found))


def drawn(ratios: Mapping[str, float] = RATIOS, **given: Any) -> Picture:
    found = parts_figure(explanations_of(explain_run(ratios, **given)), "parts")
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
    assert "below 0, by which the rest goes past the line: input." in drawn(RATIOS | {"no_input": 1.1}).caption
    assert "below 0" not in drawn(RATIOS | {"no_update": 0.97}).caption


def test_what_could_not_be_told_is_named_in_caption_and_description() -> None:
    figure = drawn(crashed={"empty": "it computes"})
    assert "could not be told, which the bar then lacks: compute and dispatch." in figure.caption
    assert "dispatch not told and compute not told" in figure.description
    assert "unexplained" not in figure.description
    assert "not told" not in drawn().caption + drawn().description


def test_a_bar_whose_parts_are_more_than_the_step_is_drawn_whole_with_a_line_at_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    axes: list[Axes] = []
    monkeypatch.setattr(parts, "bar_ends", lambda of, *more: (axes.append(of), bar_ends(of, *more)))
    drawn(RATIOS | {"no_input": 1.6, "no_reduction": 0.2})
    [found] = explanations_of(explain_run(RATIOS | {"no_input": 1.6, "no_reduction": 0.2}))
    step_ms = 1e3 * (found.step_time_s or 0.0)
    reaches = step_ms * sum(part.value for part in found.parts if part.value > 0)
    assert reaches > 1.3 * step_ms
    assert axes[0].get_xlim()[1] == pytest.approx(1.14 * reaches)
    ends = [[line.get_xdata()[:2], line.get_ydata()[:2]] for line in axes[0].get_lines()]
    assert any(x == pytest.approx([step_ms] * 2) and y[0] < 0 < y[1] for x, y in ends)
    assert axes[0].texts[-1].get_position()[0] > reaches


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


def test_the_page_says_what_was_left_out_by_its_reasons(tmp_path: Path) -> None:
    pages = []
    for few in ([], ["none × 2", "none × 3"]):
        left_out = [LeftOutRecord(combination=one, reason="it runs <elsewhere>") for one in few]
        run = explain_run()
        run = replace(run, manifest=run.manifest.model_copy(update={"left_out": left_out}))
        presentation_of(run.manifest).write_page(run, PageRequest(tmp_path / "page.html", tmp_path))
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    whole, page = pages
    assert "Left out" not in whole
    assert "<li>none × 2; none × 3: it runs &lt;elsewhere&gt;.</li>" in page
    assert page.index("<h2>Left out</h2>") < page.index("<h2>How this was measured</h2>")
