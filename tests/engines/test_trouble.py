"""Processes that do not come to each other end with a reason that says who is missing, and nothing of them is left."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from harness.errors import UsageError
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.run.request import asked_matrix
from harness.spec import sweep_from
from harness.trial.same_work.batches import Data
from tests.cli.real import still_alive
from tests.engines.sweeps import swept
from tests.engines.troubled import TROUBLES
from tests.preloaded import kept

pytestmark = pytest.mark.slow
OF_WORKERS, OF_PROCESSES = {"strategy": ["data_parallel"]}, {"strategy": ["multi_process"], "replicas": [1]}
ENGINES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "torch": ("TroubledTorch", "torch_python", OF_WORKERS),
    "horovod": ("TroubledHorovod", "horovod_python", OF_WORKERS),
    "jax": ("TroubledJax", "jax_python", OF_PROCESSES),
    "keras_distribution": ("TroubledKeras", "keras_python", OF_PROCESSES),
}
"""The engine in trouble, who gives its interpreter, and the strategy that has a replica a process."""
WITH_THE_NEXT = ("stopped", "taken")
"""Troubles of engines beside PyTorch, whose processes meet as PyTorch's do before they do by their framework."""
SMALL: dict[str, Any] = {
    "strategy": ["data_parallel"],
    "model": ["mlp"],
    "data": ["synthetic"],
    "batch_size": [8],
    "optimizer": ["sgd"],
    "trials": 1,
    "windows": 5,
    "window": 0.01,
    "max_warmup": 0,
}


OF_MODELS = "is not one of mlp, mnist_cnn, resnet20, transformer (engine torch)"


class Left(NamedTuple):
    """What a run has made, and what of it is there after it."""

    processes: list[psutil.Process]
    folders: list[Path]


def folders_of_ours() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"harness-{os.getpid()}-*"))


def children_of_ours() -> set[psutil.Process]:
    return {one for one in psutil.Process().children(recursive=True) if one.pid not in kept()}


def among(*engines: str) -> pytest.MarkDecorator:
    """For tests that are given what these engines' processes ended by."""
    params = [pytest.param(name, marks=pytest.mark.engine) for name in engines]
    return pytest.mark.parametrize("troubled", params, indirect=True)


@pytest.fixture(scope="module")
def troubled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Left]:
    """A trial of each trouble, in three processes; a phase may take 20 s, so that the first one waits for 10."""
    kind, python, strategy = ENGINES[request.param]
    engine = f"tests.engines.troubled:{kind}"
    troubles = TROUBLES if request.param == "torch" else WITH_THE_NEXT
    keys = {**SMALL, **strategy, "engine": engine, "workers": [3], "cross_device_op": list(troubles), "timeout": 20}
    asked = {**keys, "engine_python": f"{request.param}={request.getfixturevalue(python)}"}
    folders, children = folders_of_ours(), children_of_ours()
    run = swept(asked, tmp_path_factory.mktemp("troubled"))
    left = Left(still_alive([*(children_of_ours() - children)]), [*(folders_of_ours() - folders)])
    return run, left


def of(run: Run, trouble: str) -> TrialRecord:
    [found] = [trial for trial in run.trials if trial.cell.cross_device_op == trouble]
    assert (found.status, found.phase) == ("crashed", "build"), found.reason
    return found


@among("torch")
def test_a_worker_that_is_killed_on_its_way_to_the_others_is_named(troubled: tuple[Run, Left]) -> None:
    assert of(troubled[0], "killed").reason == "worker 2 ended by SIGKILL during build"


@among(*ENGINES)
def test_one_that_is_stopped_there_is_named_by_the_first_of_them(troubled: tuple[Run, Left]) -> None:
    reason = str(of(troubled[0], "stopped").reason)
    assert reason.startswith("worker 0: worker 2 did not come to ")
    assert reason.endswith(" within 10 s")


@among("torch")
def test_where_the_first_itself_is_stopped_another_one_says_so(troubled: tuple[Run, Left]) -> None:
    reason = str(of(troubled[0], "first_stopped").reason)
    assert re.match(r"worker [12]: worker 0 did not answer on ", reason)


@among(*ENGINES)
def test_a_port_that_somebody_else_has_is_told_with_the_address(troubled: tuple[Run, Left]) -> None:
    trial = of(troubled[0], "taken")
    assert trial.cluster is not None
    address = trial.cluster.members[0].address
    assert trial.reason == f"worker 0: cannot listen on {address}: Address already in use"
    assert trial.evidence is None, "the line says it all"


@among(*ENGINES)
def test_no_process_and_no_folder_is_left_of_them(troubled: tuple[Run, Left]) -> None:
    assert troubled[1] == Left([], [])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"model": ["mine:model"]}, f"model: 'mine:model' {OF_MODELS}"),
        ({"model": ["keras:ResNet50"]}, f"model: 'keras:ResNet50' {OF_MODELS}; did you mean 'resnet20'?"),
        (
            {"model": ["transformer:a=4"]},
            f"model: 'transformer:a=4' {OF_MODELS}; did you mean 'transformer'?",
        ),
        ({"data": ["tfds:mnist"]}, "data: 'tfds:mnist' is not one of synthetic, digits (engine torch)"),
        ({"model": ["mine:model"], "data": ["mine:data"]}, f"model: 'mine:model' {OF_MODELS}"),
    ],
)
def test_models_and_data_that_only_tensorflow_takes_are_refused_with_what_there_is(
    keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        asked_matrix(sweep_from({**SMALL, "workers": [2], "engine": "torch", **keys}))
    assert str(caught.value) == said


def test_what_goes_wrong_beside_the_step_ends_the_step_instead_of_its_wait() -> None:
    def without_room(_batch: Any) -> None:
        raise MemoryError

    data = Data("digits", (28, 28, 1), 8, seed=1, ahead=2, thread=True)
    data.gate = []
    with pytest.raises(MemoryError):
        next(data.batches(without_room))
