"""GPUs under PyTorch, as far as can be told without one: what is decided, where tensors lie, what is waited for."""

import ast
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.engines.torch import ENGINE
from harness.protocol.messages import Membership
from harness.record.trial import TrialRecord
from harness.spec import sweep_from
from harness.spec.expand import expand
from harness.trial.membership import INTERFACES
from harness.trial.same_work import meeting
from tests.engines.sweeps import must_have_passed_the_whole_gate, swept
from tests.engines.torch.lent import CARDS, PEAK_BYTES

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).with_name("on_cards.py")
NO_GPU = pytest.mark.skipif(any(Path("/dev").glob("nvidia[0-9]*")), reason="there is a GPU here")
LENT_TORCH = "tests.engines.torch.lent:LentTorch"
ON_GPUS: dict[str, Any] = {"device": ["gpu"], "model": ["mnist_cnn"], "data": ["digits"], "batch_size": [8]}
ON_GPUS |= {"intra_op_threads": [1]}  # threads of two processes on as many cores wait for each other
SHORT: dict[str, Any] = {"trials": 1, "windows": 5, "window": 0.01, "max_warmup": 0}
CASES = [
    node.name
    for node in ast.parse(SCRIPT.read_text()).body
    if isinstance(node, ast.FunctionDef) and "case" in map(ast.unparse, node.decorator_list)
]


def ran(python: str, *names: str) -> dict[str, str]:
    """What each case raised, in an interpreter with PyTorch."""
    command = [python, "-m", "tests.engines.torch.on_cards", *names]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def on_cards(torch_python: str) -> dict[str, str]:
    return ran(torch_python, *CASES)


@pytest.mark.parametrize("case", CASES)
def test_on_cards(on_cards: dict[str, str], case: str) -> None:
    assert on_cards[case] == "", on_cards[case]


def test_a_preloaded_process_has_asked_cuda_for_nothing(torch_python: str) -> None:
    assert ran(torch_python, "preloading") == {"preloading": ""}


def test_an_emulated_network_is_refused_where_cards_of_one_host_exchange_past_it() -> None:
    asked = {"engine": ["torch"], "device": ["gpu", "virtual-cpu"], "strategy": ["data_parallel"], "workers": [2]}
    found = expand(
        sweep_from({**asked, "replicas": [1], "network": ["rate=1gbit"], "model": ["mlp"]}), ENGINE.catalogue()
    )
    assert {cell.device for cell in found.cells if cell.network} == {"virtual-cpu"}  # type: ignore[union-attr]
    [reason] = [item.reason for item in found.left_out]
    assert reason.startswith("on gpu 'auto' exchanges through the memory of one host")


def test_in_a_network_of_the_launchers_nccl_takes_the_interface_that_gloo_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meeting, "enter_network", lambda _: None)
    monkeypatch.delenv(INTERFACES, raising=False)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "")
    member = Membership(task="worker", index=0, cluster={"worker": ["127.0.0.1:1"]})
    ENGINE.clusters.join(member)
    assert INTERFACES not in os.environ, "outside it is NCCL's and the user's own choice"
    monkeypatch.setenv(INTERFACES, "eth9")
    ENGINE.clusters.join(member.model_copy(update={"namespace": "of-the-launcher"}))
    assert (os.environ["GLOO_SOCKET_IFNAME"], os.environ[INTERFACES]) == ("lo", "=lo")


@pytest.mark.slow
@NO_GPU
def test_without_a_gpu_a_sweep_on_gpus_is_records_with_the_reason(torch_python: str, tmp_path: Path) -> None:
    asked = {"engine": ["torch"], "device": ["gpu"], "strategy": ["data_parallel"], "workers": [2]}
    more = {"model": ["mlp"], "trials": 1, "engine_python": f"torch={torch_python}"}
    run = swept({**asked, **more}, tmp_path)
    assert {trial.status for trial in run.trials} == {"unsupported"}
    reasons = {str(trial.reason) for trial in run.trials}
    assert len(reasons) == 1, "every process says the same"
    assert " finds no GPU" in reasons.pop()


@pytest.fixture(scope="module")
def lent(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[int, TrialRecord]:
    """By the number of processes, a trial of each on two cards."""
    asked = {"engine": [LENT_TORCH], "strategy": ["none", "data_parallel"], "workers": [1, 2, 3]}
    keys = {**ON_GPUS, **SHORT, **asked, "engine_python": f"torch={torch_python}"}
    folder = tmp_path_factory.mktemp("lent")
    run = swept(keys, folder, lambda cell: (cell.strategy == "none") == (cell.workers == 1))
    return {trial.cell.shape.workers: trial for trial in run.trials}


@pytest.mark.slow
def test_a_trial_on_two_cards_passes_the_gate_in_their_arithmetic(lent: dict[int, TrialRecord]) -> None:
    for processes in (1, 2):
        must_have_passed_the_whole_gate(lent[processes])
        assert lent[processes].executed.arithmetic == "tf32"


@pytest.mark.slow
def test_its_record_has_the_cards_their_memory_and_what_carried_gradients(lent: dict[int, TrialRecord]) -> None:
    of_two = lent[2]
    assert set(of_two.executed.operations) == {"all-reduce[gloo]"}, "which is what this group has for a card"
    assert of_two.executed.unlike["arithmetic"] == "TF32 in convolutions alone"
    assert "threads" not in of_two.executed.unlike, "cards share no pool of threads"
    assert (of_two.resources.physical_devices, of_two.resources.shared) == (CARDS, False)
    assert of_two.resources.logical_devices == ["cuda:0"]
    peaks = {processes: lent[processes].peak_device_memory_bytes for processes in (1, 2)}
    assert peaks == {1: PEAK_BYTES, 2: 2 * PEAK_BYTES}


@pytest.mark.slow
def test_a_third_process_has_no_card_and_says_so_for_the_trial(lent: dict[int, TrialRecord]) -> None:
    assert lent[3].status == "unsupported"
    assert str(lent[3].reason).startswith(
        "3 processes on this host need a GPU each, since NCCL refuses two on one, and "
    )


@pytest.mark.slow
@NO_GPU
def test_beside_an_engine_that_has_a_card_tensorflow_without_one_is_unsupported_with_its_reason(
    torch_python: str, tmp_path: Path
) -> None:
    both = {"engine": ["tensorflow", LENT_TORCH], "strategy": ["none"], "engine_python": f"torch={torch_python}"}
    found = {trial.cell.engine: trial for trial in swept({**ON_GPUS, **SHORT, **both}, tmp_path).trials}
    assert {engine: trial.status for engine, trial in found.items()} == {"tensorflow": "unsupported", LENT_TORCH: "ok"}
    assert "TensorFlow finds no GPU" in str(found["tensorflow"].reason)
    must_have_passed_the_whole_gate(found[LENT_TORCH])
