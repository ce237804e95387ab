"""A process of Horovod that waits for its turn exchanges nothing, and goes on at once when it has it."""

import select
import socket
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from harness.engines.horovod import group

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="only Linux holds packets back")


class Pair(NamedTuple):
    """A connection as Gloo has it: it sends at once."""

    one: socket.socket
    other: socket.socket

    def has_arrived(self) -> bool:
        return bool(select.select([self.other], [], [], 0)[0])


@pytest.fixture
def meetings() -> list[int]:
    """Of all processes, at which none is there but this one."""
    return []


@pytest.fixture
def gloos(monkeypatch: pytest.MonkeyPatch, meetings: list[int]) -> Iterator[Pair]:
    before = group._connections()
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        other, _ = listening.accept()
        with other:
            made = group._connections() - before
            assert made == {one.fileno(), other.fileno()}
            monkeypatch.setattr(group, "_gloos", made)
            monkeypatch.setattr(group, "mean", lambda _: meetings.append(len(meetings)))
            yield Pair(one, other)


def test_what_is_sent_meanwhile_arrives_once_the_rest_is_over(gloos: Pair) -> None:
    gloos.one.sendall(b"before")
    assert gloos.other.recv(6) == b"before"
    with group.resting():
        gloos.one.sendall(b"meanwhile")
        assert not gloos.has_arrived()
    assert gloos.has_arrived()
    assert gloos.other.recv(9) == b"meanwhile"
    gloos.one.sendall(b"after")
    assert gloos.has_arrived()


def test_all_processes_meet_as_the_rest_is_over_and_none_where_it_was_broken_off(
    gloos: Pair,  # noqa: ARG001
    meetings: list[int],
) -> None:
    with group.resting():
        assert meetings == []
    assert meetings == [0]
    with pytest.raises(EOFError), group.resting():
        raise EOFError
    assert meetings == [0]


def test_one_process_meets_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "mean", lambda _: pytest.fail("there is no other"))
    with group.resting():
        pass


def test_a_connection_that_has_been_closed_is_left_alone(gloos: Pair) -> None:
    gloos.one.close()
    with group.resting():
        gloos.other.sendall(b"x")
