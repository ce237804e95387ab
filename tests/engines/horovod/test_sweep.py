"""Whole sweeps with Horovod: its tape is right in one to four processes; its wrapped optimizer, and planted faults, are
found to be wrong."""

from pathlib import Path
from typing import Any

import pytest

from harness.record.reading import Run
from harness.record.trial import TrialRecord
from tests.engines.horovod.faulty import FAULTS
from tests.engines.horovod.swept import MLP, TENSORS, WRAPPERS, measured, of
from tests.engines.sweeps import OTHER_EXAMPLES, must_have_passed_the_whole_gate, must_know_its_sight

pytestmark = pytest.mark.slow
FAULTY = "tests.engines.horovod.faulty:FaultyHorovod"
FED = {**MLP, "data": ["digits"]}
"""Which have an order."""


@pytest.fixture(scope="module")
def right(horovod_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("right")
    return measured(horovod_python, folder, "horovod", forked=False, **MLP, loop=["tape"], workers=[1, 2, 3, 4])


@pytest.fixture(scope="module")
def wrapped(horovod_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, strategies = tmp_path_factory.mktemp("wrapped"), ["none", "data_parallel"]
    keys: dict[str, Any] = {**MLP, "strategy": strategies, "loop": list(WRAPPERS), "workers": [1, 2]}
    return measured(horovod_python, folder, "horovod", under=WRAPPERS, **keys)


@pytest.fixture(scope="module")
def wrong(horovod_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, ops = tmp_path_factory.mktemp("wrong"), ["auto", *FAULTS]
    return measured(horovod_python, folder, FAULTY, **FED, cross_device_op=ops, workers=[2])


@pytest.fixture(scope="module")
def models(horovod_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, names = tmp_path_factory.mktemp("models"), ["resnet20", "transformer"]
    keys = {"model": names, "data": ["digits"], "batch_size": [4], "bytes_per_pack": [65536], "workers": [2]}
    return measured(horovod_python, folder, "horovod", **keys)


def test_the_tape_passes_the_whole_gate_in_one_to_four_processes(right: Run) -> None:
    assert {trial.cell.workers for trial in right.trials} == {1, 2, 3, 4}
    for trial in right.trials:
        must_have_passed_the_whole_gate(trial)


def test_every_trial_knows_what_faults_it_would_have_seen(right: Run) -> None:
    for trial in right.trials:
        must_know_its_sight(trial)


def test_the_record_says_what_was_handed_to_horovod_and_what_is_not_in_the_program(right: Run) -> None:
    for trial in right.trials:
        assert trial.executed.engine == "horovod"
        assert trial.executed.operations == {"HorovodAllreduce": TENSORS}
        several = trial.cell.workers > 1
        assert trial.executed.packs == (None if several else 0)
        words = "up to 134217728 bytes" if several else "takes the branch without them"
        assert words in trial.executed.unlike["packs"]
    assert right.manifest.facts["engine.horovod.horovod"]


def test_a_process_that_waits_for_its_turn_takes_no_core(right: Run) -> None:
    for trial in right.trials:
        assert trial.windows is not None
        assert trial.phases.waiting_s
        assert trial.windows.waiting_cpu_seconds < 0.1 * trial.phases.waiting_s * trial.cell.workers


@pytest.mark.parametrize("loop", WRAPPERS)
def test_a_wrapped_optimizer_of_keras_3_lets_each_process_train_alone_and_is_found_out(wrapped: Run, loop: str) -> None:
    trial = of(wrapped, loop=loop, workers=2)
    assert trial.status == "wrong_result"
    assert "nothing was averaged: it is what this process had sent itself" in str(trial.reason)
    assert trial.throughput_examples_per_s is None


@pytest.mark.parametrize("loop", WRAPPERS)
@pytest.mark.parametrize("strategy", ["none", "data_parallel"])
def test_in_one_process_it_is_right_and_its_program_reduces_nothing(wrapped: Run, loop: str, strategy: str) -> None:
    trial = of(wrapped, loop=loop, strategy=strategy, workers=1)
    assert (trial.status, trial.reason) == ("ok", None)
    assert trial.executed.operations == {}


def test_no_strategy_is_the_same_step_whatever_the_loop(wrapped: Run) -> None:
    assert len({of(wrapped, loop=loop, strategy="none").executed.fingerprint for loop in WRAPPERS}) == 1


def test_beside_the_faults_the_same_way_without_any_passes(wrong: Run) -> None:
    assert of(wrong, cross_device_op="auto").status == "ok"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_a_wrong_result_without_a_figure(wrong: Run, fault: str) -> None:
    trial = of(wrong, cross_device_op=fault)
    assert trial.status == "wrong_result", trial.reason
    assert trial.throughput_examples_per_s is None


def test_the_evidence_says_which_check_found_it(wrong: Run) -> None:
    assert of(wrong, cross_device_op="missing").checks.update is False
    late = of(wrong, cross_device_op="late").checks
    assert (late.update, late.late) == (True, False)


def test_a_process_whose_data_come_in_another_order_is_named_and_passes_every_other_check(wrong: Run) -> None:
    trial = of(wrong, cross_device_op="reordered")
    assert OTHER_EXAMPLES in str(trial.reason)
    assert trial.checks.failures == ("input",)
    assert of(wrong, cross_device_op="auto").checks.input is True


def test_what_one_of_four_does_wrong_is_found_too(horovod_python: str, tmp_path: Path) -> None:
    many = measured(horovod_python, tmp_path, FAULTY, **MLP, cross_device_op=["missing"], workers=[4])
    assert [trial.status for trial in many.trials] == ["wrong_result"]


def test_larger_models_are_proved_with_joined_gradients_of_the_size_asked_for(models: Run) -> None:
    assert {trial.cell.model for trial in models.trials} == {"resnet20", "transformer"}
    for trial in models.trials:
        assert (trial.status, trial.reason) == ("ok", None), trial.cell.label
        assert "up to 65536 bytes" in trial.executed.unlike["packs"]
        assert trial.executed.input == ["Digits(1797)", "Shard(2)", "Shuffle(898)", "Batch(4)", "Prefetch(2)"]


def test_gradients_that_travel_in_half_precision_are_proved_as_such(horovod_python: str, tmp_path: Path) -> None:
    ops = ["fp16_compress"]
    run = measured(horovod_python, tmp_path, "horovod", **MLP, cross_device_op=ops, loop=["tape"], workers=[3])
    [trial] = run.trials
    assert (trial.status, trial.reason) == ("ok", None)
    assert min((trial.checks.sight or {}).values()) > 2


@pytest.fixture(scope="module")
def longer(horovod_python: str, tmp_path_factory: pytest.TempPathFactory) -> TrialRecord:
    """Of `right` the cell of two processes, but for its cycle."""
    folder = tmp_path_factory.mktemp("cycles")
    return of(measured(horovod_python, folder, "horovod", **MLP, loop=["tape"], cycle_time=[20], workers=[2]))


def test_a_longer_cycle_is_in_the_record_and_every_step_waits_for_it(right: Run, longer: TrialRecord) -> None:
    own = of(right, workers=2)
    assert own.cell.cycle_time == 0
    for trial, cycle in ((own, 1), (longer, 20)):
        must_have_passed_the_whole_gate(trial)
        assert f"ready in a cycle of {cycle} ms" in trial.executed.unlike["packs"]
    assert own.executed.fingerprint != longer.executed.fingerprint
    assert longer.step_time_s is not None
    assert longer.step_time_s > 0.01
