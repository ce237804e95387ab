"""Whole sweeps with PyTorch: the documented ways in one to four processes are right, and planted faults are found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.engines.torch.loops import loops
from harness.errors import Unsupported
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from tests.cli.real import only_run, run
from tests.engines.sweeps import (
    OTHER_EXAMPLES,
    must_have_passed_the_whole_gate,
    must_have_timed_each_by_itself,
    must_know_its_sight,
    swept,
)
from tests.engines.torch.faulty import FAULTS

pytestmark = pytest.mark.slow
COMMON: dict[str, Any] = {"data": ["synthetic"], "trials": 1, "windows": 5, "window": 0.01, "max_warmup": 0}
WAYS = ("ddp", "ddp_static", "ddp_hook", "all_reduce")
MLP = {"model": ["mlp"], "batch_size": [8]}
FED = {**MLP, "data": ["digits"]}
"""Which have an order."""
AMONG_MORE = ("missing", "stale", "left_out", "order", "reordered")
OF_THE_WAY = ("missing", "left_out", "hooked")
"""Faults in what the ways do differently; the others leave the way out, or are beside it."""
PLANTED = [("ddp", fault) for fault in FAULTS] + [("all_reduce", fault) for fault in OF_THE_WAY]
TENSORS = 6
"""Weights and biases of the perceptron."""


@pytest.fixture(scope="module")
def right(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("right")
    asked = {"engine": ["torch"], "strategy": ["none", "data_parallel"], "workers": [1, 2, 4], "loop": list(WAYS)}
    keys = {**COMMON, **MLP, **asked, "optimizer": ["momentum"], "intra_op_threads": [1]}
    flags = (
        f"--{key.replace('_', '-')}={','.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in keys.items()
    )
    done = run("sweep", *flags, f"--engine-python=torch={torch_python}", folder=folder, others=True)
    assert done.returncode == 0, done.stderr
    return only_run(folder / "results")


def distributed(
    python: str, folder: Path, engine: str, keeps: Callable[[Any], bool] = lambda _: True, **keys: Any
) -> Run:
    """As in a sweep but for the base cases, since here nothing is divided by them, and the cells that are not kept."""
    asked = {"engine": engine, "strategy": ["data_parallel"], "workers": [2], "optimizer": ["sgd"], **keys}
    return swept({**COMMON, **asked, "engine_python": f"torch={python}"}, folder, keeps)


@pytest.fixture(scope="module")
def wrong(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, engine = tmp_path_factory.mktemp("wrong"), "tests.engines.torch.faulty:FaultyTorch"
    ops, loops = ["auto", *FAULTS], ["ddp", "all_reduce"]

    def keeps(cell: Any) -> bool:
        return cell.cross_device_op == "auto" or (cell.loop, cell.cross_device_op) in PLANTED

    return distributed(torch_python, folder, engine, keeps, **FED, cross_device_op=ops, loop=loops)


def test_all_ways_pass_the_whole_gate_in_one_two_and_four_processes(right: Run) -> None:
    cells = {(trial.cell.workers, trial.cell.loop) for trial in right.trials if trial.cell.strategy == "data_parallel"}
    assert cells == {(workers, loop) for workers in (1, 2, 4) for loop in WAYS}
    for trial in right.trials:
        must_have_passed_the_whole_gate(trial)


def test_each_of_several_processes_is_timed_by_itself(right: Run) -> None:
    for trial in right.trials:
        if trial.cell.workers > 1:
            must_have_timed_each_by_itself(trial)


def test_every_trial_knows_what_faults_it_would_have_seen(right: Run) -> None:
    for trial in right.trials:
        must_know_its_sight(trial)


def test_the_record_says_what_was_reduced_and_on_what(right: Run) -> None:
    for trial in right.trials:
        executed, several = trial.executed, trial.cell.strategy == "data_parallel"
        reductions = (TENSORS if trial.cell.loop == "all_reduce" else 2) if several else 0
        assert executed.packs == reductions
        assert executed.operations == ({"all-reduce": reductions} if several else {})
        assert sum(executed.pack_bytes) == (4 * 669_706 if several else 0)  # every gradient, once
        packs = "each gradient by itself" if trial.cell.loop == "all_reduce" else "DDP's buckets"
        assert executed.unlike.get("packs", "").startswith(packs if several else "")
        assert ("packs" in executed.unlike) == several
        assert executed.unlike["threads"] == "each process has its own pool"
        assert "statistics" not in executed.unlike, "a perceptron has none"
        assert trial.resources.shared == (trial.cell.workers > trial.resources.physical_devices)
    assert right.manifest.facts["engine.torch.torch"]


def test_no_strategy_is_the_same_step_whatever_the_loop_and_measured_under_the_first(
    right: Run, torch_python: str, tmp_path: Path
) -> None:
    [measured] = [trial for trial in right.trials if trial.cell.strategy == "none" and trial.cell.intra_op_threads == 1]
    alone = {"engine": "torch", "strategy": "none", "replicas": 1, "optimizer": "momentum", "intra_op_threads": 1}
    asked = {**COMMON, **MLP, **alone, "loop": list(WAYS), "engine_python": f"torch={torch_python}"}
    plain = swept(asked, tmp_path, under=WAYS).trials
    assert measured.cell.loop == WAYS[0]
    assert {trial.cell.loop for trial in plain} == {*WAYS}
    assert len({trial.executed.fingerprint for trial in [measured, *plain]}) == 1


def of(run: Run, loop: str, op: str, workers: int = 2) -> TrialRecord:
    [found] = [
        trial
        for trial in run.trials
        if (trial.cell.loop, trial.cell.cross_device_op, trial.cell.workers) == (loop, op, workers)
    ]
    return found


@pytest.mark.parametrize("loop", ["ddp", "all_reduce"])
def test_beside_the_faults_the_same_ways_without_any_pass(wrong: Run, loop: str) -> None:
    assert of(wrong, loop, "auto").status == "ok"


@pytest.mark.parametrize(("loop", "fault"), PLANTED)
def test_a_planted_fault_is_a_wrong_result_without_a_figure(wrong: Run, loop: str, fault: str) -> None:
    trial = of(wrong, loop, fault)
    assert trial.status == "wrong_result", trial.reason
    assert trial.throughput_examples_per_s is None


def test_the_evidence_says_which_check_found_it(wrong: Run) -> None:
    assert of(wrong, "ddp", "missing").checks.update is False
    late = of(wrong, "ddp", "late").checks
    assert (late.update, late.late) == (True, False)


def test_a_process_whose_data_come_in_another_order_is_named_and_passes_every_other_check(wrong: Run) -> None:
    trial = of(wrong, "ddp", "reordered")
    assert OTHER_EXAMPLES in str(trial.reason)
    assert trial.checks.failures == ("input",)
    assert of(wrong, "ddp", "auto").checks.input is True


@pytest.fixture(scope="module")
def many(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, engine = tmp_path_factory.mktemp("many"), "tests.engines.torch.faulty:FaultyTorch"
    return distributed(torch_python, folder, engine, **FED, cross_device_op=[*AMONG_MORE], workers=[3])


@pytest.mark.parametrize("fault", AMONG_MORE)
def test_what_one_of_three_does_wrong_is_found_too(many: Run, fault: str) -> None:
    assert of(many, "ddp", fault, workers=3).status == "wrong_result"


@pytest.fixture(scope="module")
def models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, names = tmp_path_factory.mktemp("models"), ["mnist_cnn", "resnet20", "transformer"]
    return distributed(
        torch_python, folder, "torch", model=names, batch_size=[4], data=["digits"], bytes_per_pack=[65536]
    )


def test_the_other_models_are_proved_with_buckets_of_the_size_asked_for(models: Run) -> None:
    assert {trial.cell.model for trial in models.trials} == {"mnist_cnn", "resnet20", "transformer"}
    for trial in models.trials:
        assert (trial.status, trial.reason) == ("ok", None), trial.cell.label
        assert (trial.executed.packs or 0) > 1
        assert trial.executed.input == ["Digits(1797)", "Shard(2)", "Shuffle(898)", "Batch(4)", "Prefetch(2)"]


@pytest.fixture(scope="module")
def compressed(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, ops = tmp_path_factory.mktemp("compressed"), ["fp16_compress"]
    return distributed(torch_python, folder, "torch", **MLP, cross_device_op=ops, loop=["ddp_hook"])


def test_gradients_that_travel_in_half_precision_are_proved_as_such_and_are_half_as_many_bytes(compressed: Run) -> None:
    trial = of(compressed, "ddp_hook", "fp16_compress")
    assert (trial.status, trial.reason) == ("ok", None)
    assert min((trial.checks.sight or {}).values()) > 2
    assert sum(trial.executed.pack_bytes) == 2 * 669_706


def test_a_trial_too_refuses_hooks_and_buckets_that_its_loop_lacks_and_says_which_has_them() -> None:
    with pytest.raises(Unsupported, match="give --loop ddp_hook"):
        loops()["ddp"].build(None, None, "fp16_compress")
    with pytest.raises(Unsupported, match="give --loop ddp"):
        loops()["all_reduce"].build(None, 65536, "auto")


def test_batch_normalisation_is_told_where_it_is_not_as_keras_has_it(models: Run) -> None:
    told = {trial.cell.model for trial in models.trials if "batch_normalisation" in trial.checks.detail}
    assert told == {"resnet20"}
    sent = {(trial.cell.model, trial.cell.strategy) for trial in models.trials if "statistics" in trial.executed.unlike}
    assert sent == {("resnet20", "data_parallel")}, "DDP sends them"
