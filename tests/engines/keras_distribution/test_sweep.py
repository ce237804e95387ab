"""Whole sweeps with keras.distribution: `DataParallel` and `ModelParallel` on one to four devices are right, and what
is planted, or what Keras lets pass in silence, is found."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from harness.record.reading import Run
from harness.record.trial import TrialRecord
from tests.engines.keras_distribution.faulty import FAULTS, OF_STEPS, SILENT, UNMATCHED
from tests.engines.sweeps import (
    COMPILED_SOON,
    OTHER_EXAMPLES,
    must_have_passed_the_whole_gate,
    must_have_timed_each_by_itself,
    swept,
)

pytestmark = pytest.mark.slow
SHORT: dict[str, Any] = {"data": ["synthetic"], "trials": 1, "windows": 5, "window": 0.01, "max_warmup": 0}
MLP = {"model": ["mlp"], "batch_size": [8], "intra_op_threads": [1]}
LOOPS = ["data_parallel", "model_parallel"]
FED = {**MLP, "data": ["digits"]}
"""Which have an order."""
FAULTY = "tests.engines.keras_distribution.faulty:FaultyKeras"
BETWEEN_PROCESSES = ("stale", "left_out", "order", "reordered")
CUT = "batch:2,model:2"
BOTH = ["batch:2", CUT]
"""The meshes of both loops at two replicas."""
WHERE_CUT = ("missing", "late", "stale", *SILENT, UNMATCHED)
"""Faults of a step, of a copy, and of what Keras is told, in which weights that are cut are other ones."""
PLACED = [(1, "whole"), (1, "reordered"), *((2, fault) for fault in BETWEEN_PROCESSES)]
"""(devices of each of two processes, fault); more are in three processes, see the goal script's test."""
Keeps = Callable[[Any], bool]


def measured(
    python: str,
    folder: Path,
    engine: str = "keras_distribution",
    keeps: Keeps = lambda _: True,
    forked: bool = True,
    variables: Mapping[str, str] = MappingProxyType({}),
    under: Sequence[str] = (),
    **keys: Any,
) -> Run:
    """As a sweep of these keys, but for the base cases that it adds and the cells that are not kept."""
    asked = {"engine": engine, "strategy": ["distribution"], "loop": LOOPS, "optimizer": ["sgd"], **SHORT, **keys}
    return swept({**asked, "engine_python": f"keras_distribution={python}"}, folder, keeps, forked, variables, under)


@pytest.fixture(scope="module")
def right(keras_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    meshes = ["batch:1", "batch:2", "batch:3", "model:2", CUT]
    asked: dict[str, Any] = {"strategy": ["none", "distribution"], "replicas": [1, 2, 3], "mesh": meshes}
    keys = {**asked, **MLP, "optimizer": ["momentum"]}
    return measured(keras_python, tmp_path_factory.mktemp("right"), under=LOOPS, **keys)


@pytest.fixture(scope="module")
def wrong(keras_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    def keeps(cell: Any) -> bool:
        faults = WHERE_CUT if cell.loop == "model_parallel" else FAULTS
        return cell.cross_device_op in ("auto", *faults)

    ops = ["auto", *FAULTS, UNMATCHED]
    asked: dict[str, Any] = {"replicas": [2], "mesh": BOTH, "cross_device_op": ops}
    return measured(keras_python, tmp_path_factory.mktemp("wrong"), FAULTY, keeps, **asked, **FED)


def test_both_pass_the_whole_gate_on_one_to_four_devices(right: Run) -> None:
    cells = {(trial.cell.loop, trial.cell.mesh) for trial in right.trials if trial.cell.strategy != "none"}
    of_data = {("data_parallel", f"batch:{replicas}") for replicas in (1, 2, 3)}
    assert cells == of_data | {("model_parallel", "model:2"), ("model_parallel", CUT)}
    for trial in right.trials:
        must_have_passed_the_whole_gate(trial)


def test_the_record_says_what_ran_and_on_what(right: Run) -> None:
    for trial in right.trials:
        assert len(trial.resources.logical_devices) == trial.cell.devices
        if trial.cell.strategy == "none" or trial.cell.devices == 1:
            assert trial.executed.operations == {}
        elif trial.cell.loop == "data_parallel":
            assert sum(trial.executed.pack_bytes) == 4 * 669_706  # every gradient, once
        else:
            assert trial.executed.packs
            assert "cut by their outputs" in trial.executed.unlike["layout"]
            assert trial.executed.unlike["packs"].endswith(", among them those of forward and backward")
    assert right.manifest.facts["engine.keras_distribution.keras"]


def test_no_strategy_is_the_same_program_whatever_the_loop(right: Run) -> None:
    plain = [trial for trial in right.trials if trial.cell.strategy == "none"]
    assert {trial.cell.loop for trial in plain} == {*LOOPS}
    assert len({trial.executed.fingerprint for trial in plain}) == 1


def of(run: Run, mesh: str, op: str, replicas: int = 2) -> TrialRecord:
    [found] = [
        trial
        for trial in run.trials
        if (trial.cell.mesh, trial.cell.cross_device_op, trial.cell.replicas) == (mesh, op, replicas)
    ]
    return found


@pytest.mark.parametrize("mesh", BOTH)
def test_beside_the_faults_the_same_ways_without_any_pass(wrong: Run, mesh: str) -> None:
    assert of(wrong, mesh, "auto").status == "ok"


@pytest.mark.parametrize(
    ("mesh", "fault"),
    [*(("batch:2", fault) for fault in OF_STEPS), *((CUT, fault) for fault in OF_STEPS if fault in WHERE_CUT)],
)
def test_a_planted_fault_is_a_wrong_result_without_a_figure(wrong: Run, mesh: str, fault: str) -> None:
    trial = of(wrong, mesh, fault)
    assert trial.status == "wrong_result", trial.reason
    assert trial.throughput_examples_per_s is None


@pytest.mark.parametrize("mesh", BOTH)
def test_a_fault_that_begins_late_has_passed_the_first_updates(wrong: Run, mesh: str) -> None:
    checks = of(wrong, mesh, "late").checks
    assert (checks.update, checks.late) == (True, False)


@pytest.mark.parametrize(
    ("mesh", "fault", "evidence"),
    [
        ("batch:2", "unset", "weight 'dense_0/kernel' is on 1 of 2 devices: the others do not train it"),
        (CUT, "unset", "weight 'dense_0/kernel' is on 1 of 4 devices: the others do not train it"),
        ("batch:2", "whole", "replica 0 has the examples 0 to 16 of a batch of 16, expected 0 to 8"),
        (CUT, "whole", "replica 0 has the examples 0 to 16 of a batch of 16, expected 0 to 8"),
        (CUT, UNMATCHED, "no weight is cut: no key of the layout map matches the whole path of one"),
    ],
)
def test_what_keras_lets_pass_in_silence_is_a_wrong_result_that_says_why(
    wrong: Run, mesh: str, fault: str, evidence: str
) -> None:
    trial = of(wrong, mesh, fault)
    assert trial.status == "wrong_result", trial.reason
    assert evidence in trial.checks.detail["reduction"]


@pytest.fixture(scope="module")
def processes(keras_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two processes of one device each and of two, of an engine that is started as for a user."""
    placed: dict[str, Any] = {"strategy": ["multi_process"], "workers": [2], "replicas": [1, 2]}
    ops = ["auto", "whole", *BETWEEN_PROCESSES]
    keys = {**placed, **FED, "loop": ["data_parallel"], "cross_device_op": ops}

    def keeps(cell: Any) -> bool:
        return cell.cross_device_op == "auto" or (cell.replicas, cell.cross_device_op) in PLACED

    return measured(keras_python, tmp_path_factory.mktemp("two"), FAULTY, keeps, forked=False, **keys)


@pytest.mark.parametrize("replicas", [1, 2])
def test_two_processes_pass_the_whole_gate(processes: Run, replicas: int) -> None:
    trial = of(processes, "", "auto", replicas)
    must_have_passed_the_whole_gate(trial)
    assert trial.checks.input is True
    must_have_timed_each_by_itself(trial)
    assert sum(trial.executed.pack_bytes) == 4 * 669_706
    held = "1 replica" if replicas == 1 else f"{replicas} replicas"
    told = {"processes": f"one for {held}", "packs": "XLA decides which sums are joined"}
    assert told.items() <= trial.executed.unlike.items()


@pytest.mark.parametrize(("replicas", "fault"), PLACED)
def test_a_fault_between_processes_is_found_as_between_devices(processes: Run, replicas: int, fault: str) -> None:
    trial = of(processes, "", fault, replicas)
    assert trial.status == "wrong_result", trial.reason


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_process_whose_data_come_in_another_order_is_named_and_passes_every_other_check(
    processes: Run, replicas: int
) -> None:
    trial = of(processes, "", "reordered", replicas)
    assert OTHER_EXAMPLES in str(trial.reason)
    assert trial.checks.failures == ("input",)


def test_processes_that_feed_the_whole_batch_each_are_a_wrong_result(processes: Run) -> None:
    trial = of(processes, "", "whole", replicas=1)
    assert "of a batch of 32, expected" in trial.checks.detail["reduction"]


@pytest.fixture(scope="module")
def others(keras_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The rest of the models, and of one of them what does not go."""
    models = {"model": ["mnist_cnn", "resnet20", "transformer"], "batch_size": [2], "intra_op_threads": [1]}
    asked: dict[str, Any] = {"replicas": [1], "mesh": ["model:2", "model:3"], "loop": ["model_parallel"]}

    def keeps(cell: Any) -> bool:
        return cell.mesh == "model:2" or cell.model == "transformer"

    folder = tmp_path_factory.mktemp("others")
    return measured(keras_python, folder, keeps=keeps, variables=COMPILED_SOON, **models, **asked)


def test_every_model_is_proved_with_its_weights_cut_and_says_so_where_they_cannot_be(others: Run) -> None:
    ended = {(trial.cell.model, trial.cell.mesh): (trial.status, trial.reason) for trial in others.trials}
    assert {ended.pop((model, "model:2")) for model in ("mnist_cnn", "resnet20", "transformer")} == {("ok", None)}
    status, reason = ended.pop(("transformer", "model:3"))
    assert status == "unsupported"
    assert "mesh: model:3 does not cut 'transformer'" in str(reason)
    assert ended == {}
