"""What is asked of a network is what its hosts find, and when its maker is gone nothing of it is left."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from harness.run.network import EmulatedNetwork, NetworkError, NotAvailable, available
from harness.run.network.emulated import CONGESTION_CONTROLS
from harness.spec.network import Network
from tests.run.network.conftest import ended, link_of, members, said_in, within

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("emulation")]
REACHES = """
import socket
try:
    socket.create_connection(({address!r}, {port}), {limit_s}).close()
    print("true")
except OSError:
    print("false")
"""
OWNER = """
import os, sys, time
from harness.run.network import EmulatedNetwork
from harness.spec.network import Network
network = EmulatedNetwork(Network.parse("rate=1gbit,delay=1ms"), 2)
print(*(host.namespace for host in network.hosts), flush=True)
time.sleep(60)
"""


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


def reaches(network: EmulatedNetwork, source: int, target: int, limit_s: float = 5.0) -> bool:
    """Whether a host can connect to another."""
    address = network.hosts[target].address
    server = f"""
import os, socket
listening = socket.create_server(({address!r}, 0))
print(listening.getsockname()[1], flush=True)
pid = os.fork()
if pid:
    os._exit(0)
os.close(1)
os.close(2)
listening.settimeout({limit_s + 5})
listening.accept()
"""
    port = said_in(network.hosts[target], server)
    return bool(said_in(network.hosts[source], REACHES.format(address=address, port=port, limit_s=limit_s)))


LOOKS = 20
"""A machine that is busy with other things slows what crosses a network down, and who is late to read finds what has
waited: what is asked for is what one of so many looks comes to."""


def carries(network: EmulatedNetwork, rate: float) -> bool:
    """Whether a network is as fast as asked, within 10 %."""
    return any(is_as_fast_as(network.measure().bandwidth_bits_per_s, rate) for _ in range(LOOKS))


def is_as_fast_as(bandwidth: float, rate: float) -> bool:
    return 0.9 < bandwidth / rate < 1.1


def answers(network: EmulatedNetwork, delay_s: float) -> bool:
    """Whether the round trip is two delays and at most 3 ms more, which the kernel takes."""
    for _ in range(LOOKS):
        round_trip_s = network.measure().round_trip_s
        assert round_trip_s >= 2 * delay_s
        if round_trip_s <= 2 * delay_s + 0.003:
            return True
    return False


@pytest.fixture(scope="module")
def shaped() -> Iterator[EmulatedNetwork]:
    with EmulatedNetwork(Network.parse("rate=100mbit"), 3) as network:
        yield network


@pytest.fixture(scope="module")
def long_and_shaped() -> Iterator[EmulatedNetwork]:
    with EmulatedNetwork(Network.parse("rate=100mbit,delay=2ms"), 3) as network:
        yield network


@pytest.fixture(params=["shaped", "long_and_shaped"])
def network(request: pytest.FixtureRequest) -> EmulatedNetwork:
    """With the kernel's bridge, and with the relay."""
    chosen: EmulatedNetwork = request.getfixturevalue(request.param)
    return chosen


def test_every_host_reaches_every_other(network: EmulatedNetwork) -> None:
    assert all(reaches(network, source, target) for source in range(3) for target in range(3) if source != target)


def test_hosts_have_addresses_of_their_own(network: EmulatedNetwork) -> None:
    assert len({host.address for host in network.hosts}) == 3
    assert len({link_of(host.namespace) for host in network.hosts}) == 3


def test_this_machine_and_another_network_are_out_of_reach(
    shaped: EmulatedNetwork, long_and_shaped: EmulatedNetwork
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        port = listening.getsockname()[1]
        for host in (shaped.hosts[0], long_and_shaped.hosts[0]):
            for address in ("127.0.0.1", *{other.address for other in shaped.hosts}):
                assert said_in(host, REACHES.format(address=address, port=port, limit_s=1)) is False


@pytest.mark.parametrize("rate", ["2mbit", "10mbit", "100mbit", "500mbit"])
def test_the_rate_is_what_was_asked_for(rate: str) -> None:
    asked = Network.parse(f"rate={rate}")
    assert asked.rate is not None
    with EmulatedNetwork(asked, 2) as network:
        assert carries(network, asked.rate)


@pytest.mark.parametrize("delay_s", [0.001, 0.01])
def test_a_delay_is_one_way_and_so_adds_twice_to_the_round_trip(delay_s: float) -> None:
    with EmulatedNetwork(Network(delay=delay_s), 2) as network:
        assert answers(network, delay_s)


def test_without_a_delay_the_round_trip_is_what_the_kernel_takes() -> None:
    with EmulatedNetwork(Network(), 2) as network:
        assert answers(network, 0)
        assert any(network.measure().bandwidth_bits_per_s > 1e9 for _ in range(LOOKS))
        measured = network.measure()
    assert measured.congestion_control == Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()


def test_a_rate_holds_where_there_is_a_delay_too(long_and_shaped: EmulatedNetwork) -> None:
    assert carries(long_and_shaped, 100e6)
    assert answers(long_and_shaped, 0.002)


def test_two_that_send_to_one_share_the_link_of_the_one(shaped: EmulatedNetwork) -> None:
    """Both directions are shaped: without a limit on what a host receives, two senders would give it twice."""
    assert any(is_as_fast_as(received_of_two(shaped, 7100 + look), 100e6) for look in range(LOOKS))


def received_of_two(shaped: EmulatedNetwork, port: int) -> float:
    """Bits a second that the first host receives from both others in about a second."""
    receive = f"""
import os, socket, time
listening = socket.create_server(({shaped.hosts[0].address!r}, {port}))
listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # what waits there was sent before the start
ends = [listening.accept()[0] for _ in range(2)]
start, total, buffer = time.monotonic(), 0, bytearray(1 << 18)
import select
while time.monotonic() - start < 1:
    for end in select.select(ends, [], [], 1)[0]:
        total += end.recv_into(buffer)
print(total * 8)
"""
    send = f"""
import socket, time
for attempt in range(100):
    try:
        connection = socket.create_connection(({shaped.hosts[0].address!r}, {port}), 5)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
try:
    while True:
        connection.sendall(bytes(1 << 16))
except OSError:
    print(0)
"""
    with ThreadPoolExecutor() as pool:
        received = pool.submit(said_in, shaped.hosts[0], receive)
        sent = [pool.submit(said_in, host, send) for host in shaped.hosts[1:]]
        assert [sending.result() for sending in sent] == [0, 0]
        return float(received.result())


def test_a_host_whose_cable_is_cut_is_reached_again_when_it_is_restored(network: EmulatedNetwork) -> None:
    network.cut(1)
    assert not reaches(network, 0, 1, 0.5)
    assert not reaches(network, 1, 0, 0.5)
    assert reaches(network, 0, 2)
    network.restore(1)
    assert reaches(network, 0, 1)
    assert carries(network, 100e6)


def test_a_connection_survives_a_short_cut(network: EmulatedNetwork) -> None:
    """As with a real cable: nobody is told, and TCP sends again."""
    echo = f"""
import socket
connection, _ = socket.create_server(({network.hosts[1].address!r}, 7001)).accept()
while data := connection.recv(1):
    connection.sendall(data)
print(0)
"""
    talk = f"""
import socket, time
from pathlib import Path
for attempt in range(100):
    try:
        connection = socket.create_connection(({network.hosts[1].address!r}, 7001), 5)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
connection.settimeout(20)
heard = 0
start = time.monotonic()
while time.monotonic() - start < 1.5:
    connection.sendall(b"x")
    heard += len(connection.recv(1))
    time.sleep(0.01)
print(heard)
"""
    with ThreadPoolExecutor() as pool:
        echoing = pool.submit(said_in, network.hosts[1], echo)
        heard = pool.submit(said_in, network.hosts[0], talk)
        time.sleep(0.8)
        network.cut(1)
        time.sleep(0.3)
        network.restore(1)
        assert heard.result() > 10
        assert echoing.result() == 0


def test_a_network_of_one_host_is_built_and_has_nothing_to_measure() -> None:
    with (
        EmulatedNetwork(Network.parse("rate=1gbit"), 1) as network,
        pytest.raises(NetworkError, match="a network of one host has no round trip to measure"),
    ):
        network.measure()


def test_closing_leaves_no_namespace_no_process_and_no_interface(link_that_stays: Callable[[str], str]) -> None:
    before = interfaces()
    with EmulatedNetwork(Network.parse("rate=1gbit,delay=1ms"), 2) as network:
        links = [link_that_stays(host.namespace) for host in network.hosts]
        pids = [pid for link in links for pid in members(link)]
        assert len(pids) == 2
    assert within(5, lambda: not any(members(link) for link in links) and all(map(ended, pids)))
    assert interfaces() == before


@pytest.mark.parametrize("name", CONGESTION_CONTROLS.read_text().split() if CONGESTION_CONTROLS.exists() else [])
def test_connections_are_governed_by_the_congestion_control_that_was_asked_for(name: str) -> None:
    with EmulatedNetwork(Network(congestion=name), 2) as network:
        assert network.measure().congestion_control == name


def test_a_congestion_control_that_this_machine_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(NotAvailable, match=r"^congestion=nowhere cannot be had \(.*\); here are .*\breno\b"):
        EmulatedNetwork(Network(congestion="nowhere"), 2)


def test_a_network_that_could_not_be_built_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    monkeypatch.setattr("harness.run.network.emulated.shaped", lambda name, _: f"qdisc add dev {name} root nonsense")
    with pytest.raises(NotAvailable, match=r"tc: .*qdisc"):
        EmulatedNetwork(Network.parse("rate=1gbit"), 2)
    assert children() == before


def test_after_kill_9_of_its_maker_nothing_is_left(link_that_stays: Callable[[str], str]) -> None:
    before = interfaces()
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        namespaces = owner.stdout.readline().split()
        everything = [owner, *psutil.Process(owner.pid).children(recursive=True)]
        links = {link_that_stays(f"/proc/{process.pid}/ns/net") for process in everything[1:]}
        assert len(everything) == 5, "the maker, a switch with its relay, two hosts"
        assert len(links) == 3
        assert {link_of(namespace) for namespace in namespaces} < links
    finally:
        owner.kill()
        owner.wait()
    assert within(5, lambda: all(ended(process.pid) for process in everything))
    assert within(5, lambda: not any(members(link) for link in links))
    assert interfaces() == before


def test_where_all_is_there_nothing_is_lacking() -> None:
    assert available() is None


def test_a_network_whose_relay_ends_alone_goes_with_it_and_says_so() -> None:
    """A switch that is dead while its links look alive would be a hang without a reason."""
    before = children()
    with EmulatedNetwork(Network.parse("rate=1gbit,delay=1ms"), 2) as network:
        assert network.intact
        [relay] = [pid for pid in children() - before if "relay.py" in " ".join(psutil.Process(pid).cmdline())]
        psutil.Process(relay).kill()
        assert within(5, lambda: not network.intact)
        interfaces_of = "import json, socket; print(json.dumps([name for _, name in socket.if_nameindex()]))"
        assert within(5, lambda: "eth0" not in said_in(network.hosts[0], interfaces_of))
        with pytest.raises(NetworkError, match="the process that holds a network namespace is gone"):
            network.cut(0)


def test_a_network_that_was_cut_is_not_as_it_was_made() -> None:
    with EmulatedNetwork(Network(), 2) as network:
        network.cut(0)
        network.restore(0)
        assert not network.intact
