"""GPUs under JAX, as far as can be told without one: which are taken, what float32 is computed in, what is refused."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.record.trial import TrialRecord
from harness.spec import Sweep, expand
from harness.trial.engines import catalogue_of
from tests.engines.jax.lent import CARDS
from tests.engines.sweeps import must_have_passed_the_whole_gate, swept

ROOT = Path(__file__).parents[3]
PROCESS = """
import json, os, sys
from types import SimpleNamespace
import jax
from harness.engines._on_jax import devices
from harness.protocol.messages import Request
from harness.record.trial import Executed
from harness.spec import Sweep, expand
from harness.trial.engines import catalogue_of

asked = Sweep(engine=["jax"], device=["gpu"], strategy=["data_parallel"], replicas=[2], loop=["jit"])
cell = next(cell for cell in expand(asked, catalogue_of("jax")).cells if cell.shape.replicas == 2)
request = Request(cell=cell, seed=1, data_dir="", window_s=0.1, intra_op_threads=0, inter_op_threads=0)


def told(capabilities, config, variables):
    os.environ.update(variables)
    for name, value in config.items():
        jax.config.update(name, value)
    cards = [
        SimpleNamespace(platform="gpu", id=n, local_hardware_id=n, compute_capability=capability)
        for n, capability in enumerate(capabilities)
    ]
    jax.local_devices = lambda backend: {"gpu": cards}[backend]
    taken = devices.set_up(request)
    told = taken.told(Executed(unlike={"threads": "one pool", "compiler": "XLA"}))
    resources = taken.resources
    return {
        "taken": resources.logical_devices, "of": resources.physical_devices, "shared": resources.shared,
        "arithmetic": told.arithmetic, "unlike": told.unlike, "preallocate": os.environ[devices.PREALLOCATE],
    }


for case in json.loads(sys.argv[1]):  # each in a process of its own, which has JAX imported
    pid = os.fork()
    if pid == 0:
        print(json.dumps(told(*case)), flush=True)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit(1)
"""
PRECISION = "jax_default_matmul_precision"
TF32_CASES: dict[str, Any] = {
    "with a card that has more": (["9.0", "8.0"], {}, {}),
    "asked for": (["9.0", "9.0"], {PRECISION: "tensorfloat32"}, {}),
    "high": (["9.0", "9.0"], {PRECISION: "high"}, {}),
    "forbidden to NVIDIA's libraries, which XLA's own kernels are not": (
        ["9.0", "9.0"],
        {},
        {"NVIDIA_TF32_OVERRIDE": "0"},
    ),
}
FLOAT32_CASES: dict[str, Any] = {
    "with a card that has none": (["9.0", "7.5"], {}, {}),
    "highest": (["9.0", "9.0"], {PRECISION: "highest"}, {}),
    "another maker's": (["gfx942", "gfx942"], {}, {}),
}
PLACES: dict[str, Any] = {
    "three": (["9.0", "9.0", "9.0"], {}, {}),
    "told of": (["9.0", "9.0"], {"jax_platforms": "cuda,cpu"}, {}),
}


def process(python: str, *cases: Any, **variables: str) -> subprocess.CompletedProcess[str]:
    """Trials of two replicas, for each case of the compute capabilities of the cards that there are, of JAX's settings
    and of variables."""
    command = [python, "-c", PROCESS, json.dumps(cases)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def taken(jax_python: str) -> dict[str, dict[str, Any]]:
    """What the trial of each case takes."""
    cases = {**TF32_CASES, **FLOAT32_CASES, **PLACES}
    done = process(jax_python, *cases.values())
    assert done.returncode == 0, done.stderr
    return dict(zip(cases, map(json.loads, done.stdout.splitlines()[-len(cases) :]), strict=True))


def test_a_replica_takes_a_card_in_the_order_in_which_jax_finds_them_and_memory_as_it_is_needed(
    taken: dict[str, dict[str, Any]],
) -> None:
    found = taken["three"]
    assert (found["taken"], found["of"], found["shared"]) == (["gpu:0", "gpu:1"], 3, False)
    assert found["preallocate"] == "false"
    assert found["unlike"] == {"compiler": "XLA"}, "cards share no pool of threads"


def test_float32_is_tf32_where_cards_have_it_and_jax_was_not_told_otherwise(taken: dict[str, dict[str, Any]]) -> None:
    arithmetic = {name: found["arithmetic"] for name, found in taken.items()}
    assert {name: arithmetic[name] for name in TF32_CASES} == dict.fromkeys(TF32_CASES, "tf32")
    assert {name: arithmetic[name] for name in FLOAT32_CASES} == dict.fromkeys(FLOAT32_CASES, "float32")


def test_where_jax_was_told_of_no_gpu_the_reason_names_the_variable(
    jax_python: str, taken: dict[str, dict[str, Any]]
) -> None:
    said = process(jax_python, PLACES["three"], JAX_PLATFORMS="cpu").stderr.splitlines()[-1]
    assert re.search(r"Unsupported: JAX \S+ finds no GPU, since JAX_PLATFORMS is 'cpu': unset it$", said)
    assert taken["told of"]["of"] == 2


def test_threads_of_the_processor_are_refused_on_cards_where_jax_would_not_heed_them() -> None:
    asked = Sweep(engine=["jax"], device=["virtual-cpu", "gpu"], strategy=["none"], replicas=[1], intra_op_threads=[2])
    planned = expand(asked, catalogue_of("jax"))
    assert {cell.shape.device for cell in planned.cells} == {"virtual-cpu"}
    (left_out,) = planned.left_out
    assert left_out.combination == "gpu, intra_op_threads 2"
    assert left_out.reason.endswith(": leave intra_op_threads out")


@pytest.mark.slow
@pytest.mark.skipif(any(Path("/dev").glob("nvidia[0-9]*")), reason="there is a GPU here")
def test_without_a_gpu_a_sweep_on_gpus_is_records_with_the_reason(jax_python: str, tmp_path: Path) -> None:
    asked = {"engine": ["jax"], "device": ["gpu"], "strategy": ["data_parallel"], "replicas": [2], "loop": ["jit"]}
    run = swept({**asked, "model": ["mlp"], "trials": 1, "engine_python": f"jax={jax_python}"}, tmp_path)
    assert {trial.status for trial in run.trials} == {"unsupported"}
    assert all(" finds no GPU" in str(trial.reason) for trial in run.trials)


@pytest.fixture(scope="module")
def lent(jax_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[int, TrialRecord]:
    """By the number of replicas, a trial of each on two cards."""
    asked = {"engine": ["tests.engines.jax.lent:LentJax"], "device": ["gpu"], "model": ["mnist_cnn"], "loop": ["jit"]}
    asked |= {"strategy": ["data_parallel"], "replicas": [2, 3], "data": ["digits"], "batch_size": [8]}
    times = {"trials": 1, "windows": 5, "window": 0.01, "max_warmup": 0, "engine_python": f"jax={jax_python}"}
    run = swept({**asked, **times}, tmp_path_factory.mktemp("lent"), lambda cell: cell.strategy != "none")
    return {trial.cell.shape.replicas: trial for trial in run.trials}


@pytest.mark.slow
def test_a_trial_on_cards_passes_the_gate_in_their_arithmetic(lent: dict[int, TrialRecord]) -> None:
    must_have_passed_the_whole_gate(lent[2])
    assert lent[2].executed.arithmetic == "tf32"
    assert lent[2].resources.physical_devices == CARDS


@pytest.mark.slow
def test_more_replicas_than_cards_are_unsupported_with_both_numbers(lent: dict[int, TrialRecord]) -> None:
    assert lent[3].status == "unsupported"
    assert str(lent[3].reason) == f"3 replicas need a GPU each, and JAX finds {CARDS}"
