"""Real jobs of real processes that real faults are done to. What is left behind afterwards is nothing."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.record.fault_log import load_faults
from harness.record.faults import FaultRecord
from harness.run.kinds.faults import run as faults_run
from harness.run.kinds.faults import supervisor
from harness.run.kinds.faults.progress import FaultLines
from harness.run.kinds.faults.run import measure_faults
from harness.run.network import EmulatedNetwork, available
from harness.run.resume import resume
from harness.spec.faults import Faults, faults_from
from tests.cli.real import processes_of
from tests.preloaded import handed_in

PACED = "tests.run.kinds.faults.paced"
SMALL = {
    "repeats": 1,
    "steps": 30,
    "checkpoint_every": 10,
    "model": f"{PACED}:model",
    "data": "synthetic",
    "batch_size": 4,
    "optimizer": "momentum",
    "stall": 30.0,
    "timeout": 300.0,
}
"""Nobody is waited for so long but where silence is the fault: on a busy machine a step may take seconds. Momentum is
state that has to come back, and takes less to trace than adam's."""


LONG = 120
"""Steps of a job that a signal is to reach before its end: on a busy machine it came at step 23 of 30."""


@contextlib.contextmanager
def in_brief(cost_pairs: int = 0, references: int = 1) -> Iterator[None]:
    """While entered, runs measure what a checkpoint costs so often, and compare with so many undisturbed jobs: with
    one nothing passes as noise."""
    with handed_in(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults_run, "COST_PAIRS", cost_pairs)
        patch.setattr(faults_run, "REFERENCE_JOBS", references)
        yield


def run_of(results: Path, **changes: object) -> Path:
    """The folder of a small run."""
    settings: Faults = faults_from({**SMALL, **changes})
    return measure_faults(settings, results, [], FaultLines(quiet=True))


def by_fault(path: Path) -> dict[str, FaultRecord]:
    """The records of a run that has each fault once."""
    return {record.fault: record for record in load_faults(path)}


def measured(results: Path, cost_pairs: int = 0, **changes: object) -> dict[str, FaultRecord]:
    """The records of a small run by fault."""
    with in_brief(cost_pairs):
        return by_fault(run_of(results, **changes))


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a job of one process, with all that a run measures and the optimizer that runs have by default."""
    folder, faults = tmp_path_factory.mktemp("mirrored"), ["kill_worker", "sigterm"]
    of_a_megabyte = {"model": f"{PACED}:megabyte_model", "optimizer": "adam"}
    with in_brief(cost_pairs=1, references=2):
        return run_of(folder, strategy="mirrored", fault=faults, steps=LONG, **of_a_megabyte)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FaultRecord]:
    """All that is done to a coordinator, its workers and its parameter server, once there is a checkpoint."""
    faults, folder = ["kill_worker", "kill_ps", "sigterm", "freeze_ps"], tmp_path_factory.mktemp("served")
    return measured(folder, 1, strategy="parameter_server", fault=faults, stall=8.0, checkpoint_every=5)


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FaultRecord]:
    """Two workers, of which one is cut off."""
    if reason := available():
        pytest.skip(reason)
    return measured(tmp_path_factory.mktemp("cut"), strategy="multi_worker_mirrored", fault="cut_link", steps=LONG)


@pytest.fixture(scope="module")
def in_lock_step(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FaultRecord]:
    """Two workers: one freezes for a moment or is killed, and where links can be cut, the network is gone when that is
    to happen."""
    faults = ["freeze_worker", *(["cut_link"] if available() is None else []), "kill_worker"]
    cut = EmulatedNetwork.cut

    def after_its_switch_was_killed(network: EmulatedNetwork, host: int) -> None:
        os.kill(network._switch.pid, signal.SIGKILL)
        cut(network, host)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmulatedNetwork, "cut", after_its_switch_was_killed)
        patch.setattr(supervisor, "SETTLE_S", 20.0)  # on a busy machine TensorFlow needs more than its half second
        folder = tmp_path_factory.mktemp("workers")
        return measured(folder, 1, strategy="multi_worker_mirrored", fault=faults, outage=1.5)


@pytest.mark.slow
def test_a_mirrored_job_comes_back_from_its_checkpoint_with_the_same_weights(mirrored: Path) -> None:
    found = by_fault(mirrored)
    killed, told = found["kill_worker"], found["sigterm"]
    assert killed.status == "recovered", killed.reason
    assert killed.resumed_from in range(10, LONG, 10)
    assert killed.detections[0].by == "process_end"
    assert killed.weights is not None
    assert killed.weights.right
    assert told.status == "recovered", told.reason
    assert told.detections[0].by == "preemption_handler"
    assert told.steps_lost == 0
    cost = found["none"].cost
    assert cost is not None
    assert min(cost.with_s + cost.without_s) > 0
    assert cost.bytes > 10**6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "faults"),
    [("one_device", ["sigterm"]), ("central_storage", ["sigterm"]), ("dtensor", ["restart", "sigterm"])],
)
def test_the_other_strategies_of_one_process_come_back_with_the_same_weights_too(
    tmp_path: Path, strategy: str, faults: list[str]
) -> None:
    """A mesh has steps and checkpoints of its own, so that it is also started again from what it saved by itself."""
    found = measured(tmp_path, strategy=strategy, fault=faults, steps=LONG)
    ended = {name: (record.status, record.reason) for name, record in found.items()}
    assert ended == {"none": ("undisturbed", None), **dict.fromkeys(faults, ("recovered", None))}
    assert found["sigterm"].steps_lost == 0
    if "restart" in faults:
        assert found["restart"].resumed_from in range(10, LONG, 10)


@pytest.mark.slow
def test_without_a_checkpoint_a_job_begins_again_and_ends_right(tmp_path: Path) -> None:
    found = measured(tmp_path, strategy="mirrored", fault="restart", checkpoint_every=0, steps=LONG)
    assert found["restart"].status == "lost_state", found["restart"].reason
    assert found["restart"].resumed_from == 0
    assert found["restart"].weights is not None
    assert found["restart"].weights.right


@pytest.mark.slow
def test_when_a_worker_is_killed_tensorflow_says_so_in_the_other_and_both_go_on(
    in_lock_step: dict[str, FaultRecord],
) -> None:
    found = in_lock_step["kill_worker"]
    assert found.status == "recovered", found.reason
    assert found.restarted == ["worker 0", "worker 1"]
    assert {detection.by for detection in found.detections} >= {"process_end", "tensorflow"}
    assert found.updates is not None
    assert found.updates.applied == 30


@pytest.mark.slow
def test_a_coordinator_outlives_its_worker_but_not_its_parameter_server(served: dict[str, FaultRecord]) -> None:
    worker, server, told = served["kill_worker"], served["kill_ps"], served["sigterm"]
    assert worker.restarted == ["worker 1"]
    assert worker.interruption is None
    assert worker.updates is not None
    # an update that was under way is done again: at least once, not exactly once
    assert worker.updates.lost == 0
    assert worker.status == ("recovered" if worker.updates.repeated == 0 else "wrong_weights")
    assert server.status == "recovered", server.reason
    assert len(server.restarted) == 4
    assert server.updates is not None
    assert server.updates.once == 30
    assert told.status == "unsupported"
    assert "ParameterServerStrategy" in (told.reason or "")


@pytest.mark.slow
def test_a_parameter_server_that_does_not_answer_is_replaced_with_everything_else(
    served: dict[str, FaultRecord],
) -> None:
    found = served["freeze_ps"]
    assert found.status == "recovered", found.reason
    assert (found.target, found.detections[0].who, found.detections[0].by) == ("ps 0", "ps 0", "heartbeat")
    assert len(found.restarted) == 4
    assert found.updates is not None
    assert found.updates.once == 30


@pytest.mark.slow
def test_a_short_freeze_is_ridden_out_without_a_restart(in_lock_step: dict[str, FaultRecord]) -> None:
    found = in_lock_step["freeze_worker"]
    assert found.status == "recovered", found.reason
    assert found.restarted == []
    assert found.detections == []
    assert found.standstill_s is not None
    assert found.standstill_s >= 1.4


@pytest.mark.slow
def test_a_cut_link_ends_in_a_restart_on_a_link_that_works(cut_off: dict[str, FaultRecord]) -> None:
    found = cut_off["cut_link"]
    assert found.status == "recovered", found.reason
    assert found.restarted == ["worker 0", "worker 1"]


@pytest.mark.slow
def test_a_link_that_cannot_be_cut_since_its_network_is_gone_is_one_failed_job(
    in_lock_step: dict[str, FaultRecord],
) -> None:
    if reason := available():
        pytest.skip(reason)
    assert in_lock_step["cut_link"].status == "failed"
    assert "network namespace is gone" in (in_lock_step["cut_link"].reason or "")
    assert in_lock_step["kill_worker"].status == "recovered", in_lock_step["kill_worker"].reason


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_nothing_is_left_when_the_run_is_ended_while_a_worker_is_frozen(tmp_path: Path, number: int) -> None:
    arguments = [
        "--strategy",
        "multi_worker_mirrored",
        "--fault",
        "freeze_worker",
        "--checkpoint-every",
        "0",
        "--repeats",
        "1",
        "--steps",
        "60",
        "--model",
        f"{PACED}:model",
        "--batch-size",
        "2",
        "--optimizer",
        "sgd",
        "--stall",
        "60",
        "--seed",
        "6",  # by which the undisturbed job is not the first
        "--data",
        "synthetic",
    ]
    command = [sys.executable, "-m", "harness", "faults", *arguments, "--results", str(tmp_path / "results")]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while True:  # until one of its processes is stopped, which TensorFlow notices after some seconds
        children = processes_of(run)
        if any(child.status() == psutil.STATUS_STOPPED for child in children if child.is_running()):
            break
        assert run.poll() is None, run.stderr and run.stderr.read()
        time.sleep(0.2)
    os.kill(run.pid, number)
    assert run.wait(60) == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_what_it_misses(mirrored: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(mirrored, tmp_path / mirrored.name))
    log = path / "faults.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    manifest = path / "run.json"
    manifest.write_text(manifest.read_text().replace('"finished"', '"interrupted"'))
    with in_brief():
        resume("faults", path, FaultLines(quiet=True))
    assert len(load_faults(path)) == len(lines) == 3
