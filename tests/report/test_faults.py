"""A run of faults as a reader meets it: tables, sentences, page."""

import json
import re

from harness.analysis import Interval
from harness.analysis.faults import summarise_faults
from harness.record.faults import Detection
from harness.report.faults.as_json import faults_json
from harness.report.faults.page import (
    faults_headline,
    faults_lines,
    faults_page,
    faults_tables,
    overhead_words,
    spread_words,
)
from harness.report.tables.table import Table
from harness.run.kinds.faults.scenarios import plan_jobs
from harness.spec.faults import faults_from
from tests.faulted import PLAN, example, job, run_manifest

SUMMARY = summarise_faults(PLAN, example())


def table(title: str) -> Table:
    return next(one for one in faults_tables(SUMMARY, PLAN) if one.title == title)


def column(title: str, name: str) -> list[str]:
    found = table(title)
    place = [one.name for one in found.columns].index(name)
    return [row[place] for row in found.rows]


def test_a_row_with_a_wrong_end_is_marked_and_says_so() -> None:
    outcomes = column("What became of the jobs", "ended")
    assert outcomes == ["lost state", "recovered", "1 WRONG WEIGHTS, 1 recovered"]
    assert table("What became of the jobs").marked == {2}


def test_weights_and_updates_are_counts_of_counts() -> None:
    jobs = "What became of the jobs"
    assert column(jobs, "right") == ["1/1", "2/2", "1/2"]
    assert column(jobs, "twice") == ["0", "0", "1"]


def test_what_was_not_run_stands_apart_with_its_reason() -> None:
    assert set(column("Not possible", "reason")) == {"mirrored has no parameter servers"}
    assert "kill_ps" not in column("What became of the jobs", "fault")


def test_the_cost_and_the_advice_have_their_figures() -> None:
    assert column("Checkpoints when nothing fails", "time with / without") == ["+20.0 % [+20.0, +20.0]"]
    assert column("How often to make a checkpoint", "a checkpoint every") == ["38 s", "3.1 min", "8.2 min"]


def test_a_checkpoint_that_costs_next_to_nothing_has_a_cost_without_a_sign() -> None:
    assert overhead_words(Interval(0.9999, 0.9997, 1.0012)) == "0.0 % [0.0, +0.1]"


def test_the_headline_counts_right_ends() -> None:
    assert (
        faults_headline(SUMMARY)
        == "4 of 5 disturbed jobs reached the last step with the right state, 1 of them by beginning again."
    )


def test_the_sentences_name_what_was_lost_and_what_is_missing() -> None:
    lines = " ".join(faults_lines(SUMMARY))
    assert "1 update of 200 came twice" in lines
    assert "1 had to begin again at step 0" in lines
    assert "3 with the right state (3 bit for bit)" in lines
    assert "--resume runs them" in lines
    assert "the longest median wait for a useful step is 3.50 s (worker killed)" in lines
    assert "the longest median wait for a useful step is 2.02 s (worker killed)" in lines, "the figure's, not the 2.1 s"


def test_a_range_is_in_the_unit_of_its_median() -> None:
    found = summarise_faults(PLAN, [job("mirrored", "kill_worker", 20, repeat) for repeat in range(2)]).scenarios[0]
    assert spread_words(found.useful_step_s) == "3.5 s [3.0–4.0]"
    assert spread_words(found.detection_s) == "100 ms [100–100]"
    assert spread_words(None) == "–"


def test_the_json_is_plain_and_has_every_scenario() -> None:
    whole = json.loads(json.dumps(faults_json(SUMMARY), allow_nan=False))
    assert [one["scenario"] for one in whole["scenarios"]] == [one.scenario for one in SUMMARY.scenarios]
    assert whole["scenarios"][0]["cell"]["strategy"] == "mirrored"


def test_the_page_loads_nothing_and_holds_the_figure() -> None:
    page = faults_page(run_manifest(), SUMMARY)
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    assert page.count("<svg") == 1
    assert "pauses.csv" in page
    assert re.search(r"<figcaption>Training stood still for [\d.]+ m?s \(\w+ · [^)]*\)", page)
    assert "until it is noticed" in page
    assert faults_headline(SUMMARY) in page


def test_a_run_without_any_job_yet_still_has_a_page() -> None:
    page = faults_page(run_manifest(), summarise_faults(PLAN, []))
    assert "<svg" not in page
    assert "0 of 0 disturbed jobs" in page


def test_another_engine_stands_before_its_strategy_wherever_that_is_named() -> None:
    planned = plan_jobs(faults_from({"engine": ["torch", "jax"], "strategy": "data_parallel", "fault": "kill_worker"}))
    first = {cell.engine: cell for cell in planned.cells}
    noticed = [Detection(by="engine", who="worker 0", after_s=0.1)]
    told = [
        job(
            "mirrored",
            "kill_worker",
            20,
            scenario=f"{engine}/data_parallel/kill_worker/20",
            cell=cell,
            cell_id=cell.cell_id,
            detections=noticed,
        )
        for engine, cell in first.items()
    ]
    found = summarise_faults(planned.faults, told)
    for each in faults_tables(found, planned.faults)[:2]:
        assert [row[0] for row in each.rows] == ["torch data_parallel", "jax data_parallel"]
    assert [row[4:6] for row in faults_tables(found, planned.faults)[1].rows] == [("the engine", "100 ms")] * 2
    assert [line.partition(":")[0] for line in faults_lines(found)[:2]] == ["torch data_parallel", "jax data_parallel"]
    page = faults_page(run_manifest(sweep=planned.sweep, cells=planned.cells, faults=planned.faults), found)
    assert "torch data_parallel · worker killed · every 20" in page
