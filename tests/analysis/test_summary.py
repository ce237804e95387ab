"""A whole run in one object."""

import math
from dataclasses import fields
from typing import Any

import pytest

from harness.analysis import CellSummary, RunSummary, summarise
from harness.analysis.estimates.intervals import stein_estimate
from harness.errors import HarnessError
from harness.record.manifest import PlanRecord
from harness.record.trial import Executed, TrialRecord
from tests.synthetic import WRONG_EVIDENCE, default_cells, failed, make_cell, make_run, unproved


def of(summary: RunSummary, label: str) -> CellSummary:
    return next(cell for cell in summary.cells if cell.label == label)


def test_every_cell_of_the_manifest_has_a_status() -> None:
    summary = summarise(*make_run())
    assert summary.counts == {"ok": 21, "unsupported": 10, "wrong_result": 2, "timeout": 1}
    assert len(summary.cells) == 34


def test_one_wrong_trial_makes_the_whole_cell_wrong_and_unranked() -> None:
    def once(record: TrialRecord) -> TrialRecord:
        wrong = record.cell.strategy == "one_device" and record.block == 2
        return failed(record, "wrong_result", "lost updates", phase="exit") if wrong else record

    cell = of(summarise(*make_run(change=once)), "one_device ×1 b32")
    assert cell.trials.status == "wrong_result"
    assert dict(cell.trials.counts) == {"ok": 3, "wrong_result": 1}
    assert cell.measured is None
    assert cell.place is None


def test_one_unproved_trial_keeps_the_cell_out_of_every_ranking_unless_that_is_asked_for() -> None:
    def once(record: TrialRecord) -> TrialRecord:
        blind = record.cell.label == "mirrored ×2 b128 reduction_to_one_device" and record.block == 2
        return unproved(record) if blind else record

    name = "mirrored ×2 b128 reduction_to_one_device (unproved)"
    manifest, trials = make_run(change=once)
    summary = summarise(manifest, trials)
    cell = of(summary, name)
    assert (cell.trials.status, cell.place, cell.measured.trials if cell.measured else 0) == ("unproved", None, 4)
    assert summary.workloads[0].unranked == (cell,)
    assert summary.workloads[0].answer.best_id != cell.cell_id
    asked = summarise(manifest, trials, rank_unproved=True)
    assert asked.workloads[0].answer.best_id == cell.cell_id
    assert asked.workloads[0].unranked == ()


def test_a_cell_some_of_whose_trials_crashed_is_ok_with_the_crash_kept() -> None:
    cell = of(summarise(*make_run()), "central_storage ×3 b32")
    assert cell.trials.status == "ok"
    assert cell.measured is not None
    assert cell.measured.trials == 3
    assert [problem.reason for problem in cell.trials.problems] == ["the process died of signal 11"]


def test_the_evidence_of_a_wrong_result_is_kept_once_for_all_its_trials() -> None:
    problems = of(summarise(*make_run()), "mirrored ×3 b32 hierarchical_copy").trials.problems
    assert len(problems) == 1
    assert problems[0].trials == 4
    assert problems[0].failed_checks == ("reduction", "update")
    assert dict(problems[0].details) == WRONG_EVIDENCE


def test_a_cell_without_records_is_missing_and_an_unlisted_record_is_not_dropped() -> None:
    manifest, trials = make_run(status="interrupted", change=lambda r: r if r.cell.batch_size == 32 else None)
    summary = summarise(manifest, trials)
    assert of(summary, "none ×1 b128").trials.status == "missing"
    assert summary.trials == 68
    assert summary.planned == 136
    bare = manifest.model_copy(update={"cells": []})
    assert len(summarise(bare, trials).cells) == 17


def test_a_cell_whose_windows_become_shorter_is_told_and_no_other_whatever_its_records_say_of_steadiness() -> None:
    def unsteady(record: TrialRecord) -> TrialRecord:
        windows = record.windows and record.windows.model_copy(update={"steady": False})
        return record.model_copy(update={"windows": windows})

    for change in (None, unsteady):
        summary = summarise(*make_run(change=change))
        found = {cell.trials.cell.label: cell.measured.trend for cell in summary.cells if cell.measured}
        assert {label for label, trend in found.items() if trend} == {"mirrored ×3 b32", "mirrored ×3 b128"}
        assert -0.35 < (found["mirrored ×3 b32"] or 0) < -0.1


def test_cells_with_one_fingerprint_at_the_same_batch_and_replicas_are_the_same_experiment() -> None:
    summary = summarise(*make_run())
    twins = of(summary, "mirrored ×2 b32 hierarchical_copy").same_experiment_as
    assert [summary.by_id[other].label for other in twins] == ["mirrored ×2 b32 reduction_to_one_device"]
    assert of(summary, "mirrored ×2 b32").same_experiment_as == ()


def test_weak_and_strong_scaling_are_ranked_apart() -> None:
    cells = [make_cell("none", 1, 96), make_cell("mirrored", 3, 96)]
    both = [*cells, *(make_cell(c.strategy, c.replicas, 96, batch_scope="global") for c in cells)]
    summary = summarise(*make_run(both, faults=False))
    assert [work.workload.get("batch_scope") for work in summary.workloads] == ["per_replica", "global"]
    assert [len(work.ranking) for work in summary.workloads] == [2, 2]


def test_the_loop_is_a_choice_within_one_ranking() -> None:
    cells = [make_cell("none", loop=loop) for loop in ("custom", "fit")]
    summary = summarise(*make_run(cells, noise=0.001))
    assert [cell.label for cell in summary.workloads[0].ranking] == ["none ×1 b32", "none ×1 b32 fit"]


def test_the_runs_noise_is_the_paired_deviation_free_of_drift() -> None:
    noise = summarise(*make_run(blocks=12, drift=0.1, noise=0.01, seed=3)).noise
    assert noise.paired_deviation == pytest.approx(0.01 * 2**0.5, rel=0.15)
    assert noise.cell_deviation is not None
    assert noise.cell_deviation > 0.05
    assert noise.waiting_cpu_share == pytest.approx(0.03 / 8)


def test_the_order_of_records_changes_nothing() -> None:
    manifest, trials = make_run()
    forward, back = summarise(manifest, trials), summarise(manifest, trials[::-1])
    for one, other in zip(forward.cells, back.cells, strict=True):
        assert one.place == other.place
        assert (one.measured is None) == (other.measured is None)
        if one.measured and other.measured:
            assert one.measured.throughput.value == pytest.approx(other.measured.throughput.value)


def test_runs_with_nothing_in_them_are_summarised() -> None:
    manifest, _ = make_run(blocks=0)
    summary = summarise(manifest, [])
    assert set(summary.counts) == {"missing"}
    assert summary.workloads[0].answer.best_id is None
    empty = summarise(manifest.model_copy(update={"cells": []}), [])
    assert empty.workloads == ()


def test_a_measurement_that_is_no_number_is_an_error() -> None:
    manifest, trials = make_run([make_cell()], blocks=2)
    broken = trials[0].model_copy(update={"step_time_s": float("nan")})
    with pytest.raises(HarnessError, match="finite"):
        summarise(manifest, [broken, trials[1]])


def test_ops_are_compared_with_the_default_and_the_failed_ones_are_listed() -> None:
    work = summarise(*make_run()).workloads[0]
    group = next(group for group in work.ops if group.label == "mirrored, 3 replicas, batch 32")
    found = {item.op: item.relative for item in group.results}
    assert set(found) == {"auto", "nccl", "hierarchical_copy", "reduction_to_one_device"}
    assert found["auto"] is found["nccl"] is found["hierarchical_copy"] is None
    assert found["reduction_to_one_device"] is not None


def test_summaries_are_immutable() -> None:
    summary = summarise(*make_run(default_cells((1,), (32,)), blocks=2))
    with pytest.raises(AttributeError):
        setattr(summary, fields(summary)[0].name, "changed")


def test_a_second_stage_keeps_the_first_stages_variance_in_the_interval() -> None:
    """Stein: the number of trials was chosen from s0, so the final interval must not use another s."""
    manifest, trials = make_run([make_cell("none", 1)], blocks=6, faults=False)
    plan = manifest.plans[0]
    stages = [
        PlanRecord.sealed(plan.seed, 1, plan.blocks[:3]),
        PlanRecord.sealed(plan.seed, 2, plan.blocks[3:], 3),
    ]
    (cell,) = summarise(manifest.model_copy(update={"plans": stages}), trials).cells
    assert cell.measured is not None
    values = [math.log(t.throughput_examples_per_s or 0.0) for t in sorted(trials, key=lambda t: t.block)]
    expected = stein_estimate(values, 3).interval()
    assert cell.measured.throughput.method == "Stein t"
    assert cell.measured.throughput.low == pytest.approx(expected.low)
    assert cell.measured.throughput.high == pytest.approx(expected.high)


def test_trials_of_unsupported_cells_are_not_run_again_and_not_missing() -> None:
    def once(record: TrialRecord) -> TrialRecord | None:
        return None if record.status == "unsupported" and record.block else record

    summary = summarise(*make_run(change=once))
    assert (summary.trials, summary.planned, summary.not_run_again) == (106, 136, 30)
    cut = summarise(*make_run(change=lambda record: record if record.block == 0 else None))
    assert (cut.trials, cut.not_run_again) == (34, 30)


def test_one_program_on_other_servers_is_another_experiment() -> None:
    def alike(record: TrialRecord) -> TrialRecord:
        return record.model_copy(update={"executed": Executed(operations={"AddN": 1}, fingerprint="same")})

    cells = [make_cell("parameter_server", 1, workers=2, ps=ps, global_batch_size=32) for ps in (1, 2)]
    summary = summarise(*make_run(cells, change=alike, faults=False))
    assert [cell.same_experiment_as for cell in summary.cells] == [(), ()]


def test_kept_records_that_show_one_program_with_xla_and_without_are_two_experiments() -> None:
    """Model.fit compiles within a step that looks the same: what tells them apart are the clusters."""

    def alike(record: TrialRecord) -> TrialRecord:
        ran = Executed(fingerprint="same", xla_clusters=int(record.cell.get("xla") is True))
        return record.model_copy(update={"executed": ran})

    cells = [make_cell(loop="fit", xla=xla) for xla in (False, True)]
    summary = summarise(*make_run(cells, change=alike, faults=False))
    assert [cell.same_experiment_as for cell in summary.cells] == [(), ()]


def test_the_name_of_a_ranking_leaves_out_what_ran_otherwise_and_nothing_of_what_its_data_are_called() -> None:
    files = "tfrecord:/of me, float32, no XLA, b/*"

    def otherwise(record: TrialRecord) -> TrialRecord:
        told = {"arithmetic": "tf32", "engine": "jax", "unlike": {"compiler": "XLA compiles the whole step"}}
        return record.model_copy(update={"executed": record.executed.model_copy(update=told)})

    def named(**change: Any) -> str:
        cells = [make_cell("none", data=files), make_cell("mirrored", 2, data=files)]
        return summarise(*make_run(cells, faults=False, **change)).workloads[0].workload.label

    plain = named()
    assert plain.startswith(f"mnist_cnn on {files}, virtual-cpu, ")
    head, told = plain.split(", virtual-cpu, ")
    assert {"float32", "no XLA"} <= {*told.split(", ")}
    left = [words for words in told.split(", ") if words not in ("float32", "no XLA")]
    assert named(change=otherwise) == ", ".join([head, "virtual-cpu", *left])
