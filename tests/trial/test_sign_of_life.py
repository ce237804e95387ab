"""A trial says that what takes long goes on: now and then, and before each update of a reference."""

import socket
from typing import Any

import pytest

from harness.engines.tensorflow.reference.runs import run_updates
from harness.engines.tensorflow.reference.update import SingleDevice
from harness.engines.tensorflow.state import capture
from harness.protocol.channel import Channel
from harness.protocol.engine import GATE_UPDATES
from harness.protocol.messages import Report
from harness.trial import sign_of_life as module
from harness.trial.noise import PERTURBED_RUNS, ReferenceRun
from harness.trial.sign_of_life import SignOfLife
from tests.engines.tensorflow.referenced import BATCHES, training
from tests.trial.lines import LineTrainer


def test_the_parent_is_told_now_and_then_however_often_it_could_be(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = map(Channel, socket.socketpair())
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    sign_of_life = SignOfLife()
    sign_of_life()  # to nobody
    sign_of_life.tell_over(theirs)
    for now[0] in (100.0, 100.5, 100.9, 101.5):
        sign_of_life()
    theirs.close()
    told = [ours.receive_line(), ours.receive_line()]
    assert [Report.model_validate_json(line or "") for line in told] == [Report(alive=True)] * 2
    with pytest.raises(EOFError):
        ours.receive_line()


def test_who_counts_is_told_how_many_pieces_are_done_and_at_once_of_something_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, told = [100.0], list[int]()
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    sign_of_life = SignOfLife()
    for count in range(2):
        sign_of_life.tell_by(told.append)
        sign_of_life(10 * count)
        sign_of_life(10 * count + 1)
    now[0] += 2
    sign_of_life(12)
    assert told == [0, 10, 12]


def test_each_update_of_a_reference_in_numpy_is_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    signs: list[bool] = []
    monkeypatch.setattr("harness.trial.same_work.reference.sign_of_life", lambda: signs.append(True))
    LineTrainer("", batches=GATE_UPDATES).found()
    assert len(signs) >= GATE_UPDATES * (1 + PERTURBED_RUNS)


def test_each_update_of_tensorflows_reference_is_a_sign_of_life(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    signs: list[bool] = []
    monkeypatch.setattr("harness.engines.tensorflow.reference.runs.sign_of_life", lambda: signs.append(True))
    of = training(tf, list, 2)
    initial = capture(of.model, of.optimizer)
    run_updates(SingleDevice(of), initial, BATCHES, ReferenceRun([state.copies[0] for state in initial]))
    assert len(signs) == len(BATCHES)
