"""Processes meet at the first one's address, whoever else connects there; Gloo takes the interface of an address."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.errors import HarnessError
from harness.protocol.messages import Membership
from harness.trial.same_work import meeting

INTERFACE = "GLOO_SOCKET_IFNAME"
LOOPBACK = "127.0.0.1"
LONG_S = 600.0


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """The socket of the first process."""
    with meeting._listening(LOOPBACK, 0) as found:
        yield found


def test_strangers_who_connect_are_nobody_who_is_waited_for(listening: socket.socket) -> None:
    host, port = listening.getsockname()
    with (
        ThreadPoolExecutor() as others,
        socket.create_connection((host, port)),  # says nothing
        socket.create_connection((host, port)) as rubbish,
        socket.create_connection((host, port)) as gone,
    ):
        rubbish.sendall(b"GET / HTTP/1.1\r\n\r\n")
        gone.close()
        called = [others.submit(meeting._be_called, host, port, index, LONG_S) for index in (1, 2)]
        meeting._call_all(listening, 3, LONG_S)
        assert [one.result() for one in called] == [None, None]


def test_all_who_are_missing_are_named(listening: socket.socket) -> None:
    host, port = listening.getsockname()
    with socket.create_connection((host, port)) as one:
        one.sendall((2).to_bytes(meeting.INDEX_BYTES))
        with pytest.raises(HarnessError, match=rf"^worker 1, worker 3 did not come to {host}:{port} within 0.1 s$"):
            meeting._call_all(listening, 4, 0.1)


def test_an_interface_that_the_user_has_named_and_that_is_not_here_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Membership(task="worker", index=0, cluster={"worker": [f"{LOOPBACK}:1"]})
    monkeypatch.setenv(INTERFACE, "lo,none0")
    with pytest.raises(HarnessError, match=rf"^{INTERFACE}: no interface 'none0' here, only .*lo.*; unset it$"):
        meeting.enter(member, INTERFACE)


@pytest.mark.parametrize("empty", [True, False])
def test_where_none_is_named_it_is_the_one_of_the_process_own_address(
    monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    monkeypatch.setenv(INTERFACE, "")
    if not empty:
        monkeypatch.delenv(INTERFACE)
    meeting.enter(Membership(task="worker", index=0, cluster={"worker": [f"{LOOPBACK}:1"]}), INTERFACE)
    assert os.environ[INTERFACE] == "lo"
