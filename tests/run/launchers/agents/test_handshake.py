"""Who is taken in: those with the token and the same versions; everybody else learns why not, and so does the sweep."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.run.launchers.agents.handshake import JoinError, WrongToken, admit, ask
from harness.run.launchers.agents.identity import own_identity, telling_variables, told_variables, unequal
from harness.run.launchers.agents.messages import PROTOCOL, Admission, Greeting
from harness.run.launchers.agents.wire import HANDSHAKE_BYTES, Wire, WireError

TOKEN = "a token of this test"


def both(parent: Callable[[Wire], Any], worker: Callable[[Wire], Any]) -> tuple[Any, Any]:
    """What each side returns, or the exception that it raises."""
    listening = socket.create_server(("127.0.0.1", 0))
    there = Wire(socket.create_connection(listening.getsockname()))
    here = Wire(listening.accept()[0])
    listening.close()
    answers: list[Any] = [None]

    def run() -> None:
        try:
            answers[0] = parent(here)
        except JoinError as error:
            answers[0] = error
        finally:
            here.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        said = worker(there)
    except JoinError as error:
        said = error
    thread.join()
    there.close()
    return answers[0], said


def test_who_has_the_token_is_taken_and_knows_that_the_sweep_has_it_too() -> None:
    ours = own_identity("10.0.0.7")
    taken, said = both(lambda wire: admit(wire, TOKEN, own_identity()), lambda wire: ask(wire, TOKEN, ours))
    assert taken == ours
    assert said is None


def test_a_wrong_token_is_refused_and_both_sides_say_so() -> None:
    refused, said = both(
        lambda wire: admit(wire, TOKEN, own_identity()),
        lambda wire: ask(wire, "another token, as long", own_identity()),
    )
    assert isinstance(refused, WrongToken)
    assert isinstance(said, WrongToken)
    assert str(refused) == str(said) == "token: it is not this run's"


def test_a_worker_does_not_serve_a_sweep_that_only_pretends_to_have_the_token() -> None:
    _, said = both(takes_anybody, lambda wire: ask(wire, TOKEN, own_identity()))
    assert isinstance(said, WrongToken)
    assert "does not have it" in str(said)


def takes_anybody(wire: Wire) -> None:
    """A parent that takes anybody, with a proof by a token of its own."""
    wire.send(Greeting(protocol=PROTOCOL, nonce="0" * 64))
    wire.receive()
    wire.send(Admission(proof="f" * 64))


@pytest.mark.parametrize("key", ["harness", "source", "TensorFlow", "Keras", "python"])
def test_unequal_versions_are_refused_and_both_are_named(key: str) -> None:
    ours = own_identity()
    changed = {"packages": {**ours.packages, key: "9.9"}} if key in ours.packages else {key: "9.9"}
    other = ours.model_copy(update=changed)
    refused, said = both(lambda wire: admit(wire, TOKEN, own_identity()), lambda wire: ask(wire, TOKEN, other))
    assert isinstance(refused, JoinError)
    assert not isinstance(refused, WrongToken)
    here = ours.packages.get(key) or getattr(ours, key)
    assert f"is 9.9 there and {here} here" in str(refused)
    assert str(said) == str(refused)


@pytest.mark.parametrize(
    ("here", "there", "reason"),
    [
        ({}, {"TF_USE_LEGACY_KERAS": "1"}, "TF_USE_LEGACY_KERAS is 1 there and not set here"),
        ({"OMP_NUM_THREADS": "2"}, {}, "OMP_NUM_THREADS is not set there and 2 here"),
        ({"XLA_FLAGS": "a", "KERAS_BACKEND": "jax"}, {"XLA_FLAGS": "b"}, "KERAS_BACKEND is not set there and jax here"),
        ({"NCCL_IB_DISABLE": "1"}, {}, "NCCL_IB_DISABLE is not set there and 1 here"),
        ({"NCCL_P2P_LEVEL": "NVL"}, {"NCCL_P2P_LEVEL": "SYS"}, "NCCL_P2P_LEVEL is SYS there and NVL here"),
        ({}, {"FI_PROVIDER": "efa"}, "FI_PROVIDER is efa there and not set here"),
        ({"XLA_FLAGS": "x" * 500}, {"XLA_FLAGS": "x" * 499 + "y"}, "XLA_FLAGS is xxx"),
    ],
)
def test_variables_that_change_what_is_computed_must_be_the_same_and_the_first_that_is_not_is_named(
    here: dict[str, str], there: dict[str, str], reason: str
) -> None:
    ours, theirs = (own_identity().model_copy(update={"variables": telling_variables(side)}) for side in (here, there))
    refused, said = both(lambda wire: admit(wire, TOKEN, ours), lambda wire: ask(wire, TOKEN, theirs))
    assert str(refused).startswith(reason)
    assert str(refused).endswith("; both must have the same")
    assert str(said) == str(refused)


def test_variables_are_this_processs_own_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in told_variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    monkeypatch.setenv("XLA_FLAGS", " ")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert own_identity().variables == {"KERAS_BACKEND": "tensorflow"}


def test_as_many_and_as_long_variables_as_there_can_be_fit_into_a_hello() -> None:
    variables = telling_variables(dict.fromkeys(told_variables(), "ü" * 10000))
    ours = own_identity().model_copy(update={"variables": variables})
    assert len(variables) == len(told_variables()) == len(set(told_variables()))
    taken, said = both(lambda wire: admit(wire, TOKEN, ours), lambda wire: ask(wire, TOKEN, ours))
    assert (taken, said) == (ours, None)


def test_where_a_process_is_need_not_be_equal() -> None:
    ours = own_identity()
    assert (
        unequal(ours, ours.model_copy(update={"host": "elsewhere", "address": "x", "machine": "", "node": "n1"}))
        is None
    )


def test_the_token_does_not_travel() -> None:
    seen = bytearray()

    class Listening(Wire):
        def take_in(self) -> None:
            super().take_in()
            seen.extend(self._buffer)

    both(
        lambda wire: admit(_as(Listening, wire), TOKEN, own_identity()),
        lambda wire: ask(_as(Listening, wire), TOKEN, own_identity()),
    )
    assert b"proof" in seen
    assert TOKEN.encode() not in seen


def _as(kind: type[Wire], wire: Wire) -> Wire:
    return kind(wire.connection)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no hello of a worker"),
        (b"[" * 1000 + b"\n", "no hello of a worker"),
        (b'{"protocol": 1}\n', "no hello of a worker"),
        (b"x" * (HANDSHAKE_BYTES + 2), f"a line of more than {HANDSHAKE_BYTES} bytes"),
        (b"", "the connection was closed"),
    ],
)
def test_what_is_no_worker_is_refused_with_the_reason(said: bytes, reason: str) -> None:
    def talk(wire: Wire) -> None:
        wire.receive()
        wire.connection.sendall(said)
        wire.connection.shutdown(socket.SHUT_WR)

    refused, _ = both(lambda wire: admit(wire, TOKEN, own_identity()), talk)
    assert isinstance(refused, JoinError)
    assert reason in str(refused)


def test_who_says_nothing_is_refused_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.launchers.agents.handshake.HANDSHAKE_S", 0.2)
    held = threading.Event()

    def silent(_: Wire) -> None:
        held.wait(5)

    def parent(wire: Wire) -> None:
        try:
            admit(wire, TOKEN, own_identity())
        finally:
            held.set()

    refused, _ = both(parent, silent)
    assert str(refused) == "no answer in time"


def test_a_hello_that_was_overheard_is_of_no_use_on_another_connection() -> None:
    overheard = []

    def record(wire: Wire) -> None:
        taken = Wire(wire.connection)
        send = taken.connection.sendall

        class Tap:
            def __getattr__(self, name: str) -> Any:
                return getattr(wire.connection, name)

            def sendall(self, data: bytes) -> None:
                overheard.append(data)
                send(data)

        taken.connection = Tap()  # type: ignore[assignment]
        ask(taken, TOKEN, own_identity())

    both(lambda wire: admit(wire, TOKEN, own_identity()), record)

    def replay(wire: Wire) -> None:
        wire.receive()
        wire.connection.sendall(overheard[0])

    refused, _ = both(lambda wire: admit(wire, TOKEN, own_identity()), replay)
    assert isinstance(refused, WrongToken)


def test_a_line_has_its_limit_also_when_it_comes_in_pieces() -> None:
    def talk(wire: Wire) -> None:
        for _ in range(40):
            try:
                wire.connection.sendall(b"x" * 1024)
            except OSError:
                return

    def parent(wire: Wire) -> str:
        try:
            wire.receive()
        except WireError as error:
            return str(error)
        return "taken"

    said, _ = both(parent, talk)
    assert said == f"a line of more than {HANDSHAKE_BYTES} bytes"
