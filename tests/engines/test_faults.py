"""Real jobs of the engines beside TensorFlow that faults are done to: each comes back by its own checkpoints."""

import re
from pathlib import Path
from typing import Any

import pytest

from harness.record.fault_log import load_faults
from harness.record.faults import UNDISTURBED, FaultRecord, PlannedFault
from harness.run.kinds.faults import run as faults_run
from harness.run.kinds.faults import supervisor
from harness.run.kinds.faults.progress import FaultLines
from harness.run.kinds.faults.run import FaultsRun, measure_faults
from harness.spec.faults import faults_from
from harness.trial.engines import engine_of
from tests.preloaded import handed_in

pytestmark = pytest.mark.slow
SMALL = {"repeats": 1, "steps": 60, "checkpoint_every": 5, "data": "synthetic", "batch_size": 4, "stall": 60.0}
"""Momentum and adam are state that has to come back. Nobody is waited for so long: on a busy machine a step may take
seconds."""
LONG = 200
"""Steps of a job that a signal is to reach before its end."""
ALL_LEFT: Any = FaultsRun.left.fget


def disturbed(
    engine: str, python: str, folder: Path, with_costs: bool = False, **changes: Any
) -> dict[str, FaultRecord]:
    """The records of a small run, by strategy and fault; what checkpoints cost is tried only where that is asked."""
    name = engine_of(engine).name
    settings = faults_from(
        {**SMALL, "engine": engine, "engine_python": f"{name}={python}", "timeout": 300.0, **changes}
    )
    with handed_in(others=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults_run, "COST_PAIRS", 1)
        patch.setattr(faults_run, "REFERENCE_JOBS", 1)  # with one nothing passes as noise
        if not with_costs:
            patch.setattr(FaultsRun, "left", property(_but_undisturbed))
        patch.setattr(supervisor, "SETTLE_S", 20.0)  # on a busy machine an engine needs more than its half second
        path = measure_faults(settings, folder, [], FaultLines(quiet=True))
    return {f"{record.cell.strategy} {record.fault}": record for record in load_faults(path)}


def _but_undisturbed(run: FaultsRun) -> list[PlannedFault]:
    return [job for job in ALL_LEFT(run) if job.fault != UNDISTURBED]


def must_have_come_back(record: FaultRecord) -> None:
    """From a checkpoint, and to the very state of a job that nothing was done to."""
    assert (record.status, record.reason) == ("recovered", None)
    assert record.resumed_from is not None
    assert record.resumed_from > 0
    assert record.weights is not None
    assert record.weights.right
    assert record.updates is not None
    assert record.updates.applied == record.steps


def must_have_noticed(record: FaultRecord, said: str) -> None:
    """The process that nothing was done to, by its engine's own error, which matches the pattern `said`."""
    told = {found.who: found for found in record.detections if found.by == "engine"}
    assert re.search(said, told["worker 0"].said or "")
    assert record.restarted == ["worker 0", "worker 1"]


def test_a_job_of_pytorch_comes_back_when_a_process_is_killed_and_rides_out_a_short_freeze(
    torch_python: str, tmp_path: Path
) -> None:
    faults = ["kill_worker", "freeze_worker", "sigterm"]
    found = disturbed("torch", torch_python, tmp_path, with_costs=True, fault=faults, steps=LONG, outage=1.5)
    must_have_come_back(found["data_parallel kill_worker"])
    must_have_noticed(found["data_parallel kill_worker"], "Connection")
    frozen, told = found["data_parallel freeze_worker"], found["data_parallel sigterm"]
    assert (frozen.status, frozen.restarted) == ("recovered", [])
    assert (frozen.standstill_s or 0) >= 1.4
    assert (told.status, told.reason) == (
        "unsupported",
        "PyTorch has nothing that saves when a process is told to end; see kill_worker",
    )
    cost = found["data_parallel none"].cost
    assert cost is not None
    assert min(cost.with_s + cost.without_s) > 0
    assert cost.bytes > 10**6


def test_a_checkpoint_of_pytorch_without_the_optimizer_ends_in_wrong_weights(torch_python: str, tmp_path: Path) -> None:
    found = disturbed("tests.engines.torch.faulty:ForgetfulTorch", torch_python, tmp_path, fault="restart")
    record = found["data_parallel restart"]
    assert record.status == "wrong_weights"
    assert "against an undisturbed job" in (record.reason or "")


def test_jobs_of_jax_come_back_in_one_process_and_in_several(jax_python: str, tmp_path: Path) -> None:
    found = disturbed("jax", jax_python, tmp_path, with_costs=True, fault="kill_worker", steps=LONG)
    must_have_come_back(found["data_parallel kill_worker"])
    must_have_come_back(found["multi_process kill_worker"])
    must_have_noticed(found["multi_process kill_worker"], "Gloo")
    cost = found["multi_process none"].cost
    assert cost is not None
    assert cost.bytes > 0


def test_jaxs_preemption_service_saves_in_all_processes_after_one_step_and_loses_none(
    jax_python: str, tmp_path: Path
) -> None:
    engine = "tests.engines.jax.faulty:PacedJax"
    found = disturbed(engine, jax_python, tmp_path, strategy="multi_process", fault="sigterm")
    told = found["multi_process sigterm"]
    must_have_come_back(told)
    assert [detection.by for detection in told.detections] == ["preemption_handler"] * 2
    assert told.steps_lost == 0


def test_a_job_of_keras_distribution_comes_back(keras_python: str, tmp_path: Path) -> None:
    found = disturbed("keras_distribution", keras_python, tmp_path, strategy="multi_process", fault="kill_worker")
    must_have_come_back(found["multi_process kill_worker"])
    must_have_noticed(found["multi_process kill_worker"], "Gloo")


def test_a_job_of_horovod_comes_back_with_what_the_first_process_broadcasts(
    horovod_python: str, tmp_path: Path
) -> None:
    found = disturbed("horovod", horovod_python, tmp_path, fault="kill_worker", steps=LONG)
    must_have_come_back(found["data_parallel kill_worker"])
    must_have_noticed(found["data_parallel kill_worker"], "Horovod has been shut down|Connection reset by peer")
