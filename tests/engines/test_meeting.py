"""Processes meet at the first one's address, whoever else connects there; Gloo takes the interface of an address."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.engines.horovod import group
from harness.errors import HarnessError, Unsupported
from harness.protocol.messages import Membership
from harness.trial.same_work import meeting

INTERFACE = "GLOO_SOCKET_IFNAME"
LOOPBACK = "127.0.0.1"
LONG_S = 600.0


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as found:
        return int(found.getsockname()[1])


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """The socket of the first process."""
    with meeting._listening(LOOPBACK, 0, everywhere=False) as found:
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
        meeting._call_all(listening, "first:1", 3, LONG_S)
        assert [one.result() for one in called] == [None, None]


def test_all_who_are_missing_are_named(listening: socket.socket) -> None:
    host, port = listening.getsockname()
    with socket.create_connection((host, port)) as one:
        one.sendall((2).to_bytes(meeting.INDEX_BYTES))
        with pytest.raises(HarnessError, match=r"^worker 1, worker 3 did not come to first:1 within 0.1 s$"):
            meeting._call_all(listening, "first:1", 4, 0.1)


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


def test_outside_of_a_network_of_the_launchers_the_first_process_is_reached_at_every_address_of_its_host() -> None:
    """Its own name may lead to 127.0.1.1, or it is reached by an address that is another machine's."""
    with meeting._listening("127.0.1.1", 0, everywhere=True) as found:
        port = found.getsockname()[1]
        socket.create_connection((LOOPBACK, port)).close()
    with meeting._listening("127.0.1.1", 0, everywhere=False) as found, pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, found.getsockname()[1]))


def test_two_processes_meet_at_an_address_of_either_kind() -> None:
    port = free_port()
    for host in [LOOPBACK, *(["[::1]"] if has_ipv6() else [])]:
        cluster = {"worker": [f"{host}:{port}", f"{host}:{port + 1}"]}
        members = [Membership(task="worker", index=index, cluster=cluster) for index in (0, 1)]
        with ThreadPoolExecutor() as pool:
            first, other = (pool.submit(meeting.meet, member, LONG_S) for member in members)
            assert other.result() is None
            met = first.result()
            assert met is not None
            met.close()


def test_gloo_takes_the_interface_that_leads_to_another_host_whatever_the_own_name_leads_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process of the host may be behind a loopback address."""
    sources = {"127.0.1.1": LOOPBACK, "node2": "10.0.0.1"}

    class Way:
        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> "Way":
            return self

        def __exit__(self, *_: object) -> None: ...
        def connect(self, address: str) -> None:
            self.source = sources[address]

        def getsockname(self) -> tuple[str, int]:
            return self.source, 1

    cluster = {"worker": ["127.0.1.1:1", "127.0.1.1:2", "node2:1"]}
    found = lambda host, *_, **__: [(socket.AF_INET, socket.SOCK_DGRAM, 0, "", host)]  # noqa: E731
    interfaces = {"lo": [LOOPBACK], "eth0": ["10.0.0.1"]}
    monkeypatch.setattr(meeting, "_interfaces", lambda: interfaces)
    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(socket, "socket", Way)
    monkeypatch.delenv(INTERFACE, raising=False)
    meeting.enter(Membership(task="worker", index=0, cluster=cluster), INTERFACE)
    assert os.environ[INTERFACE] == "eth0"


def test_horovod_says_that_it_meets_over_ipv4_alone() -> None:
    with pytest.raises(Unsupported, match=r"^Horovod's processes meet over IPv4, and .* '::1' has no such address$"):
        group._ipv4("::1")
    assert group._ipv4("127.0.1.1") == "127.0.1.1"
