"""The summary of a run of faults: medians and ranges, what checkpoints cost, how often to make one."""

import math

import pytest

from harness.analysis.faults import FaultsSummary, MedianRange, ScenarioSummary, summarise_faults
from harness.record.faults import Detection
from harness.report.faults.page import faults_lines
from harness.run.kinds.faults.scenarios import plan_jobs
from harness.spec.faults import faults_from
from tests.faulted import PLAN, example, job, undisturbed


def summary() -> FaultsSummary:
    return summarise_faults(PLAN, example())


def scenario(name: str) -> ScenarioSummary:
    return next(one for one in summary().scenarios if one.scenario == name)


def test_times_are_medians_with_their_range_and_count() -> None:
    found = scenario("mirrored/kill_worker/20")
    assert found.useful_step_s == MedianRange(3.5, 3.0, 4.0, 2)
    assert found.restart_s == MedianRange(2.5, 2.0, 3.0, 2)
    assert found.steps_lost == MedianRange(5.0, 0.0, 10.0, 2)


def test_who_noticed_first_is_kept_apart_from_when_the_engine_did() -> None:
    found = scenario("mirrored/kill_worker/20")
    assert found.detected_by == {"process_end": 2}
    assert found.detection_s == MedianRange(0.1, 0.1, 0.1, 2)
    assert found.engine_s == MedianRange(0.2, 0.2, 0.2, 2)


def test_what_the_hit_process_says_itself_is_not_how_the_engine_noticed() -> None:
    thawed = job("mirrored", "kill_worker", 20).model_copy(update={"target": "worker 0"})
    (found,) = summarise_faults(PLAN, [thawed]).scenarios
    assert found.engine_s is None


def test_updates_are_added_up_over_jobs_and_wrong_weights_counted() -> None:
    found = scenario("parameter_server/kill_worker/20")
    assert (found.updates_repeated, found.updates_torn, found.updates_scheduled) == (1, 1, 200)
    assert (found.weights_right, found.weights_judged) == (1, 2)
    assert found.statuses == {"wrong_weights": 1, "recovered": 1}


def test_jobs_that_make_no_sense_did_not_run() -> None:
    found = scenario("mirrored/kill_ps/0")
    assert (found.ran, found.useful_step_s, found.reason) == (0, None, "mirrored has no parameter servers")


def test_scenarios_come_in_the_order_that_was_asked_for() -> None:
    names = [one.scenario for one in summary().scenarios]
    assert names == [
        "mirrored/kill_worker/0",
        "mirrored/kill_worker/20",
        "mirrored/kill_ps/0",
        "mirrored/kill_ps/20",
        "parameter_server/kill_worker/20",
    ]


def test_the_cost_of_checkpoints_is_paired_within_a_job_and_jobs_are_the_unit() -> None:
    jobs = [
        undisturbed("mirrored", [1.2, 2.4], [1.0, 2.0], 0),  # a drift that both kinds of window share
        undisturbed("mirrored", [1.1, 1.1], [1.0, 1.0], 1),
    ]
    (cost,) = summarise_faults(PLAN, jobs).costs
    assert cost.overhead.value == pytest.approx(math.sqrt(1.2 * 1.1))
    assert cost.overhead.count == 2
    assert cost.overhead.low is not None
    assert cost.overhead.low < 1.1 < cost.overhead.value
    assert cost.checkpoint_s == MedianRange(pytest.approx(0.2), pytest.approx(0.1), pytest.approx(0.3), 2)  # type: ignore[arg-type]
    assert cost.pairs == 4


def test_one_job_alone_gives_no_interval() -> None:
    (cost,) = summarise_faults(PLAN, [undisturbed("mirrored", [1.2], [1.0])]).costs
    assert cost.overhead.low is None


def test_the_advice_is_youngs_optimum() -> None:
    found = {one.between_faults_s: one for one in summary().advice}
    day = found[86400.0]
    assert day.every_s == pytest.approx(math.sqrt(2 * 0.2 * 86400))
    assert day.every_steps == round(day.every_s / 0.05)
    # at the optimum both parts of the loss are the same
    assert day.lost_share == pytest.approx(2 * 0.2 / day.every_s + day.restart_s / 86400)
    assert day.restart_s == pytest.approx(0.1 + 2.25)
    assert found[3600.0].every_s < day.every_s < found[7 * 86400.0].every_s


def test_jobs_of_several_intervals_give_one_advice_by_the_median_of_all_their_checkpoints() -> None:
    asked = {"repeats": 1, "strategy": "mirrored", "fault": "kill_worker", "checkpoint_every": [0, 10, 50]}
    plan = plan_jobs(faults_from(asked)).faults
    priced = [
        undisturbed("mirrored", [1.0 + added], [1.0], repeat).model_copy(
            update={"checkpoint_every": every, "scenario": f"mirrored/none/{every}"}
        )
        for every, repeat, added in ((10, 0, 0.1), (10, 1, 0.2), (50, 0, 0.4))
    ]
    found = summarise_faults(plan, [job("mirrored", "kill_worker", 10), *priced])
    assert [(cost.every, round(cost.checkpoint_s.median, 6)) for cost in found.costs] == [(10, 0.15), (50, 0.4)]
    assert [one.between_faults_s for one in found.advice] == [3600.0, 86400.0, 7 * 86400.0]
    assert found.advice[1].every_s == pytest.approx(math.sqrt(2 * 0.2 * 86400))
    [line] = [line for line in faults_lines(found) if line.startswith("mirrored")]
    assert line.count("loses least") == 1


def test_there_is_no_advice_where_a_checkpoint_cost_nothing_that_could_be_measured() -> None:
    jobs = [job("mirrored", "kill_worker", 20), undisturbed("mirrored", [1.0], [1.0])]
    assert summarise_faults(PLAN, jobs).advice == []


def test_scenarios_of_several_engines_are_told_apart_and_come_in_the_order_of_the_engines() -> None:
    asked = {"engine": ["torch", "tensorflow", "jax"], "strategy": ["data_parallel", "mirrored"], "repeats": 1}
    planned = plan_jobs(faults_from({**asked, "fault": "kill_worker", "checkpoint_every": 0}))
    cells = {cell.cell_id: cell for cell in planned.cells}
    told = [
        job("mirrored", "kill_worker", 0, scenario=one.scenario, cell_id=one.cell_id, cell=cells[one.cell_id])
        for one in planned.faults.jobs
        if one.fault == "kill_worker"
    ]
    found = summarise_faults(planned.faults, told).scenarios
    assert [(one.scenario, one.cell.engine) for one in found] == [
        ("torch/data_parallel/kill_worker/0", "torch"),
        ("mirrored/kill_worker/0", "tensorflow"),
        ("jax/data_parallel/kill_worker/0", "jax"),
    ]


def test_an_engines_own_word_is_when_it_noticed() -> None:
    noticed = [
        Detection(by="stalled_steps", who="worker 0", after_s=5.0),
        Detection(by="engine", who="worker 0", after_s=9.0),
    ]
    (found,) = summarise_faults(PLAN, [job("mirrored", "kill_worker", 20, detections=noticed)]).scenarios
    assert found.engine_s == MedianRange(9.0, 9.0, 9.0, 1)
