"""Whole sweeps with JAX: the documented ways at one to four replicas are right, and every planted fault is found."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from harness.record.reading import Run
from harness.record.trial import TrialRecord
from tests.cli.real import only_run, run
from tests.engines.jax.faulty import FAULTS
from tests.engines.sweeps import (
    COMPILED_SOON,
    OTHER_EXAMPLES,
    must_have_passed_the_whole_gate,
    must_have_timed_each_by_itself,
    must_know_its_sight,
    swept,
)

pytestmark = pytest.mark.slow
COMMON: dict[str, Any] = {
    "data": ["synthetic"],
    "loop": ["jit", "shard_map"],
    "trials": 1,
    "windows": 5,
    "window": 0.01,
    "max_warmup": 0,
}
MLP = {"model": ["mlp"], "batch_size": [8]}
FED = {**MLP, "data": ["digits"]}
"""Which have an order."""
BETWEEN_PROCESSES = ("missing", "stale", "left_out", "order", "reordered")
OF_JIT = ("missing", "left_out", "mean", "stale", "late", "again")
"""The others are planted beside the step, or in it by `shard_map` whatever the way is."""
PLANTED = [("shard_map", fault) for fault in FAULTS] + [("jit", fault) for fault in OF_JIT]
PLACED = [
    ("jit", 1, "reordered"),
    ("jit", 1, "missing"),
    ("shard_map", 1, "stale"),
    *(("shard_map", 2, fault) for fault in BETWEEN_PROCESSES),
]
"""(way, devices of each of two processes, fault); more are in three processes, see the goal script's test."""
THREADS = 2
"""As many as two cores: there a base case on the whole machine is one on the cell's threads."""


@pytest.fixture(scope="module")
def right(jax_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("right")
    asked = {"engine": ["jax"], "strategy": ["none", "data_parallel"], "replicas": [1, 3, 4]}
    keys = {**COMMON, **MLP, **asked, "optimizer": ["momentum"], "intra_op_threads": [THREADS]}
    flags = (
        f"--{key.replace('_', '-')}={','.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in keys.items()
    )
    done = run("sweep", *flags, f"--engine-python=jax={jax_python}", folder=folder, others=True)
    assert done.returncode == 0, done.stderr
    return only_run(folder / "results")


def at_two_replicas(
    python: str,
    folder: Path,
    engine: str,
    keeps: Callable[[Any], bool] = lambda _: True,
    variables: Mapping[str, str] = MappingProxyType({}),
    **keys: list[str] | list[int],
) -> Run:
    """Both ways at two replicas, as in a sweep but for the base cases, since here nothing is divided by them, and the
    cells that are not kept."""
    two = {"strategy": ["data_parallel"], "replicas": [2]}
    asked: dict[str, Any] = {"engine": engine, **two, "optimizer": ["sgd"], **keys}
    return swept({**COMMON, **asked, "engine_python": f"jax={python}"}, folder, keeps, variables=variables)


@pytest.fixture(scope="module")
def wrong(jax_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, engine = tmp_path_factory.mktemp("wrong"), "tests.engines.jax.faulty:FaultyJax"

    def keeps(cell: Any) -> bool:
        return cell.cross_device_op == "auto" or (cell.loop, cell.cross_device_op) in PLANTED

    return at_two_replicas(jax_python, folder, engine, keeps, **FED, cross_device_op=["auto", *FAULTS])


def test_both_ways_pass_the_whole_gate_at_one_to_four_replicas(right: Run, wrong: Run) -> None:
    passed = [*right.trials, *(trial for trial in wrong.trials if trial.cell.cross_device_op == "auto")]
    cells = {(trial.cell.strategy, trial.cell.replicas, trial.cell.loop) for trial in passed}
    assert {("data_parallel", replicas, loop) for replicas in (1, 2, 3, 4) for loop in ("jit", "shard_map")} < cells
    for trial in passed:
        must_have_passed_the_whole_gate(trial)


def test_every_trial_knows_what_faults_it_would_have_seen(right: Run) -> None:
    for trial in right.trials:
        must_know_its_sight(trial)


def test_the_record_says_what_ran_and_on_what(right: Run) -> None:
    for trial in right.trials:
        replicas = trial.cell.replicas
        assert len(trial.resources.logical_devices) == replicas
        assert trial.resources.shared == (replicas > trial.resources.physical_devices)
        assert trial.resources.intra_op_threads == trial.cell.intra_op_threads
        assert trial.executed.unlike.get("threads") == ("all devices share one pool" if replicas > 1 else None)
        if trial.cell.strategy == "none":
            assert trial.executed.operations == {}
        elif replicas > 1:
            assert trial.executed.operations["all-reduce"] == trial.executed.packs
            assert sum(trial.executed.pack_bytes) == 4 * 669_706  # every gradient, once
            assert trial.resources.inter_op_threads >= 2 * replicas
    assert right.manifest.facts["engine.jax.jax"]


def test_programs_of_one_cell_have_one_fingerprint_and_those_of_others_another(right: Run) -> None:
    found = {trial.cell.cell_id: trial.executed.fingerprint for trial in right.trials if trial.cell.replicas > 1}
    assert len(set(found.values())) == len(found)


def test_no_strategy_is_the_same_program_whatever_the_loop_and_measured_under_the_first(
    right: Run, jax_python: str, tmp_path: Path
) -> None:
    [measured] = [
        trial for trial in right.trials if trial.cell.strategy == "none" and trial.cell.intra_op_threads == THREADS
    ]
    alone = {"engine": "jax", "strategy": "none", "replicas": 1, "optimizer": "momentum", "intra_op_threads": THREADS}
    asked = {**COMMON, **MLP, **alone, "engine_python": f"jax={jax_python}"}
    plain = swept(asked, tmp_path, under=COMMON["loop"]).trials
    assert measured.cell.loop == COMMON["loop"][0]
    assert {trial.cell.loop for trial in plain} == {*COMMON["loop"]}
    assert len({trial.executed.fingerprint for trial in [measured, *plain]}) == 1


def of(run: Run, loop: str, op: str) -> TrialRecord:
    [found] = [
        trial
        for trial in run.trials
        if trial.cell.replicas == 2 and (trial.cell.loop, trial.cell.cross_device_op) == (loop, op)
    ]
    return found


@pytest.mark.parametrize(("loop", "fault"), PLANTED)
def test_a_planted_fault_is_a_wrong_result_without_a_figure(wrong: Run, loop: str, fault: str) -> None:
    trial = of(wrong, loop, fault)
    assert trial.status == "wrong_result", trial.reason
    assert trial.throughput_examples_per_s is None


@pytest.mark.parametrize("loop", ["jit", "shard_map"])
def test_the_evidence_says_which_check_found_it(wrong: Run, loop: str) -> None:
    assert of(wrong, loop, "missing").checks.update is False
    assert "on replica 1" in of(wrong, loop, "stale").checks.detail["update"]
    late = of(wrong, loop, "late").checks
    assert (late.update, late.late) == (True, False)


def test_a_mean_in_the_sum_itself_is_told_from_a_mean_before_it(wrong: Run) -> None:
    assert "that is the mean, not the sum" in of(wrong, "shard_map", "mean").checks.detail["reduction"]
    before = of(wrong, "jit", "mean").checks
    assert (before.reduction, before.update) == (True, False)


@pytest.fixture(scope="module")
def processes(jax_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two processes of one device each, whose program is that of two devices in one, and of two each."""
    folder, engine = tmp_path_factory.mktemp("processes"), "tests.engines.jax.faulty:FaultyJax"
    placed: dict[str, Any] = {"strategy": ["multi_process"], "workers": [2], "replicas": [1, 2]}
    ops = ["auto", *BETWEEN_PROCESSES]

    def keeps(cell: Any) -> bool:
        return cell.cross_device_op == "auto" or (cell.loop, cell.replicas, cell.cross_device_op) in PLACED

    return at_two_replicas(jax_python, folder, engine, keeps, **FED, **placed, cross_device_op=ops)


def between(run: Run, loop: str, op: str, replicas: int) -> TrialRecord:
    [found] = [
        trial
        for trial in run.trials
        if (trial.cell.loop, trial.cell.cross_device_op, trial.cell.replicas) == (loop, op, replicas)
    ]
    return found


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("loop", ["jit", "shard_map"])
def test_two_processes_pass_the_whole_gate_and_say_who_took_part(processes: Run, loop: str, replicas: int) -> None:
    trial = between(processes, loop, "auto", replicas)
    must_have_passed_the_whole_gate(trial)
    assert trial.checks.input is True
    must_have_timed_each_by_itself(trial)
    assert sum(trial.executed.pack_bytes) == 4 * 669_706
    held = "1 replica" if replicas == 1 else f"{replicas} replicas"
    told = {"processes": f"one for {held}", "packs": "XLA decides which sums are joined"}
    assert told.items() <= trial.executed.unlike.items()
    assert ("threads" in trial.executed.unlike) == (replicas > 1), "a device alone has its process's own pool"


@pytest.mark.parametrize(("loop", "replicas", "fault"), PLACED)
def test_a_fault_between_processes_is_found_as_between_devices(
    processes: Run, loop: str, fault: str, replicas: int
) -> None:
    trial = between(processes, loop, fault, replicas)
    assert trial.status == "wrong_result", trial.reason


@pytest.mark.parametrize(("loop", "replicas"), [("jit", 1), ("shard_map", 2)])
def test_a_process_whose_data_come_in_another_order_is_named_and_passes_every_other_check(
    processes: Run, loop: str, replicas: int
) -> None:
    trial = between(processes, loop, "reordered", replicas)
    assert OTHER_EXAMPLES in str(trial.reason)
    assert trial.checks.failures == ("input",)


@pytest.fixture(scope="module")
def normalised(jax_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("normalised")
    asked: dict[str, Any] = {"model": ["resnet20"], "batch_size": [4], "intra_op_threads": [1]}
    return at_two_replicas(jax_python, folder, "jax", variables=COMPILED_SOON, **asked)


def test_batch_normalisation_is_proved_as_each_way_has_it_and_the_record_says_how(normalised: Run) -> None:
    jit, mapped = (of(normalised, loop, "auto") for loop in ("jit", "shard_map"))
    assert (jit.status, mapped.status) == ("ok", "ok")
    assert "over the global batch" in jit.checks.detail["batch_normalisation"]
    assert "each replica keeps its own untrained statistics" in mapped.checks.detail["statistics"]
    assert "batch_normalisation" not in mapped.checks.detail
    assert (jit.executed.packs or 0) > (mapped.executed.packs or 0)
    joined = "XLA decides which sums are joined"
    told = [trial.executed.unlike["packs"] for trial in (jit, mapped)]
    assert told == [f"{joined}, among them those of batch normalisation", joined]


def test_a_run_is_not_gone_on_with_by_another_jax(right: Run, tmp_path: Path) -> None:
    copy = tmp_path / right.path.name
    shutil.copytree(right.path, copy)
    there = right.manifest.facts["engine.jax.jax"]
    manifest = (copy / "run.json").read_text().replace(f'"engine.jax.jax": "{there}"', '"engine.jax.jax": "0.8.0"')
    (copy / "run.json").write_text(manifest.replace('"status": "finished"', '"status": "interrupted"'))
    lines = (copy / "trials.jsonl").read_text().splitlines(keepends=True)
    (copy / "trials.jsonl").write_text("".join(lines[:-1]))
    done = run("sweep", "--resume", str(copy), folder=tmp_path, others=True)
    assert done.returncode == 2
    assert f"the engine's packages are others than at the start (engine.jax.jax 0.8.0 → {there}); begin" in done.stderr
    assert (copy / "trials.jsonl").read_text() == "".join(lines[:-1])
