"""Collectives by themselves with the engines beside TensorFlow: what is right is timed, each planted fault is found."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.engines.torch import ENGINE as TORCH
from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.run.network import available
from harness.run.request import asked_matrix
from harness.spec import sweep_from
from harness.spec.collective import COLLECTIVES, in_whole_shares
from harness.trial.same_work.collectives import SameSending
from harness.trial.same_work.trainer import refuse_what_is_beside
from tests.engines.sweeps import swept

COMMON: dict[str, Any] = {"work": "collective", "trials": 1, "windows": 5, "window": 0.01, "max_warmup": 0}
EVERYWHERE = ("element", "kept")
"""Faults that every collective can have; the others are an all-reduce's."""
BITS_PER_S = 100e6
ASKED = ((2, 2**16), (3, 2**16), (2, 24))
"""How many send how many bytes."""


class Sender(NamedTuple):
    """Which axis of an engine's cells says how many send, and the engine with what is wrong with it."""

    name: str
    axis: str
    faulty: str


SENDERS = [
    Sender("torch", "workers", "tests.engines.torch.faulty:FaultyTorch"),
    Sender("jax", "replicas", "tests.engines.jax.faulty:FaultyJax"),
    Sender("horovod", "workers", "tests.engines.horovod.faulty:FaultyHorovod"),
]


def sent(python: str, folder: Path, sender: Sender, engine: str, count: int, **keys: Any) -> Run:
    """A sweep of collectives between so many."""
    placed = {sender.axis: [count], "engine": engine, "engine_python": f"{sender.name}={python}"}
    return swept({**COMMON, **placed, **keys}, folder)


@pytest.fixture(scope="module", params=[pytest.param(of, id=of.name, marks=pytest.mark.engine) for of in SENDERS])
def sender(request: pytest.FixtureRequest) -> tuple[Sender, str]:
    return request.param, request.getfixturevalue(f"{request.param.name}_python")


@pytest.fixture(scope="module")
def right(sender: tuple[Sender, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    of, python = sender
    return sent(python, tmp_path_factory.mktemp("right"), of, of.name, 2, collective=[*COLLECTIVES], size=[24, 2**16])


@pytest.fixture(scope="module")
def wrong(sender: tuple[Sender, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    of, python = sender
    folder, ops = tmp_path_factory.mktemp("wrong"), ["auto", *EVERYWHERE]
    return sent(python, folder, of, of.faulty, 3, collective=[*COLLECTIVES], size=[2**16], cross_device_op=ops)


@pytest.fixture(scope="module")
def apart(sender: tuple[Sender, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    of, python = sender
    faults = ["apart"] if of.name == "jax" else ["apart", "absent"]
    return sent(python, tmp_path_factory.mktemp("apart"), of, of.faulty, 3, size=[4, 2**16], cross_device_op=faults)


@pytest.mark.slow
def test_each_collective_is_exact_between_two_and_three_and_is_timed(
    right: Run, wrong: Run, sender: tuple[Sender, str]
) -> None:
    """The larger size between three is beside what is wrong."""
    passed = [*right.trials, *of(wrong, cross_device_op="auto")]
    found = {(trial.cell.collective, trial.cell.replicas_in_sync, trial.cell.size) for trial in passed}
    asked = ((name, n, in_whole_shares(name, size, n)) for name in COLLECTIVES for n, size in ASKED)
    assert found == {*asked}
    for trial in passed:
        assert (trial.status, trial.reason) == ("ok", None), trial.cell.label
        assert (trial.checks.gate, trial.checks.reduction, trial.checks.late) == ("collective", True, True)
        assert trial.throughput_per_s == pytest.approx(trial.cell.size / (trial.step_time_s or 0))
        assert trial.executed.engine == sender[0].name
        assert trial.executed.unlike["call"]


@pytest.mark.slow
def test_programs_of_different_collectives_are_told_apart(right: Run) -> None:
    prints = {(trial.cell.collective, trial.cell.size): trial.executed.fingerprint for trial in right.trials}
    assert len({prints[name, 24] for name in COLLECTIVES}) == len(COLLECTIVES)


def of(run: Run, **keys: Any) -> list[TrialRecord]:
    return [trial for trial in run.trials if all(trial.cell.get(key) == value for key, value in keys.items())]


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIVES)
def test_an_element_that_is_wrong_on_the_last_replica_is_found_and_named(wrong: Run, name: str) -> None:
    [trial] = of(wrong, collective=name, cross_device_op="element")
    assert (trial.status, trial.throughput) == ("wrong_result", None), trial.reason
    assert trial.checks.reduction is False
    assert "replica 2 received" in str(trial.reason)


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_result_that_is_kept_once_it_has_been_proved_is_found_after_the_last_window(wrong: Run, name: str) -> None:
    [trial] = of(wrong, collective=name, cross_device_op="kept")
    assert (trial.status, trial.throughput) == ("wrong_result", None), trial.reason
    assert (trial.checks.reduction, trial.checks.late) == (True, False)


@pytest.mark.slow
def test_a_replica_that_does_not_join_is_found_in_every_size(apart: Run) -> None:
    assert {trial.cell.size for trial in apart.trials} == {4, 2**16}
    for trial in apart.trials:
        assert (trial.status, trial.throughput) == ("wrong_result", None), trial.reason
        assert trial.checks.reduction is False


@pytest.mark.slow
def test_the_processes_of_jax_are_proved_as_its_devices_are(jax_python: str, tmp_path: Path) -> None:
    [jax] = [sender for sender in SENDERS if sender.name == "jax"]
    placed: dict[str, Any] = {"strategy": ["multi_process"], "workers": [2]}
    run = sent(jax_python, tmp_path, jax, "jax", 1, collective=[*COLLECTIVES], size=[2**16], **placed)
    assert len(run.trials) == len(COLLECTIVES)
    for trial in run.trials:
        assert (trial.status, trial.reason) == ("ok", None), trial.cell.label
        assert trial.cluster is not None
        assert len(trial.cluster.members) == 2


@pytest.fixture
def emulation() -> None:
    if (reason := available()) is not None:
        pytest.skip(reason)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.usefixtures("emulation")
@pytest.mark.parametrize("name", [sender.name for sender in SENDERS])
def test_on_an_emulated_network_a_buffer_takes_as_long_as_its_bytes_take_on_the_wire(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    size, [sender] = 2**20, [sender for sender in SENDERS if sender.name == name]
    placed: dict[str, Any] = {"workers": [2], "replicas": [1], "network": ["rate=100mbit"]}
    run = sent(request.getfixturevalue(f"{name}_python"), tmp_path, sender, name, 2, size=[size], **placed)
    [slow] = run.trials
    assert (slow.status, slow.reason) == ("ok", None)
    assert (slow.step_time_s or 0) > 0.9 * size * 8 / BITS_PER_S  # of two processes each sends as much


def test_what_gloo_has_not_got_is_unsupported_in_pytorchs_own_words() -> None:
    said = "Backend gloo does not support reduce_scatter"
    assert TORCH.classify(RuntimeError(said)) == ("unsupported", f"RuntimeError: {said}")
    assert TORCH.classify(RuntimeError("gloo: connection closed by peer"))[0] == "crashed"


def test_keys_that_would_be_without_effect_are_unsupported() -> None:
    asked = {"work": "collective", "engine": "torch", "size": 4}
    [cell] = asked_matrix(sweep_from(asked)).cells
    packed = cell.model_copy(update={"packing": "bytes_per_pack=4096"})
    request = Request(cell=packed, seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1)
    with pytest.raises(Unsupported, match="packing: PyTorch has nothing that it would change; leave the flag out"):
        refuse_what_is_beside(request, SameSending.taken, "PyTorch")
