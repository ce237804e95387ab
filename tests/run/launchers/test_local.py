"""Processes on this machine: every one gets an address of its own, where nobody outside reaches it if possible."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.protocol.messages import Request
from harness.run.launchers import CannotPlace, NotNow, Placement, launchers
from harness.run.launchers.base import tasks_of
from harness.run.network import EmulatedNetwork, Ground, Grounds, NotAvailable, TooSlow
from harness.run.process.zygote import Zygote
from harness.spec import Cell
from tests.record.examples import cell
from tests.run.network.conftest import emulation, link_of, link_that_stays, loopback, members, within

SYNCHRONOUS = cell(strategy="multi_worker_mirrored", workers=3, replicas=1)
SERVED = cell(strategy="parameter_server", workers=2, replicas=1, ps=1, global_batch_size=32)
NETWORKED = SYNCHRONOUS.model_copy(update={"network": "rate=100mbit"})
__all__ = ["emulation", "link_that_stays", "loopback"]


def request(of: Cell, isolate: bool = True) -> Request:
    """A request for a trial of `of`."""
    pools = {"intra_op_threads": 1, "inter_op_threads": 2}
    return Request(cell=of, seed=1, data_dir="", window_s=0.1, isolate=isolate, **pools)


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    """Never started: a launcher only gives it out."""
    idle = Zygote()
    yield idle
    idle.close()


def placed(of: Cell, zygote: Zygote, isolate: bool = True) -> Placement:
    return launchers()["local"].place(request(of, isolate), zygote)


def addresses(placement: Placement) -> list[str]:
    return [address for task in placement.seats[0].member.cluster.values() for address in task]


def can_bind(port: int) -> bool:
    """Whether another program could take the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
        try:
            other.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def test_a_synchronous_trial_is_its_workers_and_a_served_one_has_a_coordinator_that_leads(zygote: Zygote) -> None:
    assert tasks_of(SYNCHRONOUS) == [("worker", 0), ("worker", 1), ("worker", 2)]
    assert tasks_of(SERVED) == [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0)]
    for of, leader in ((SYNCHRONOUS, "worker 0"), (SERVED, "coordinator")):
        seats = placed(of, zygote).seats
        assert [seat.member.name for seat in seats if seat.member.leads] == [leader]


@pytest.mark.parametrize("isolate", [True, False])
def test_every_process_knows_the_address_of_every_other_and_all_are_on_loopback(zygote: Zygote, isolate: bool) -> None:
    placement = placed(SERVED, zygote, isolate)
    clusters = [seat.member.cluster for seat in placement.seats]
    assert all(cluster == clusters[0] for cluster in clusters)
    assert len(set(addresses(placement))) == 4
    assert all(address.startswith("127.0.0.1:") for address in addresses(placement))
    placement.release()


def test_without_isolation_a_port_is_held_until_the_trial_is_over_and_free_afterwards(zygote: Zygote) -> None:
    placement = placed(SYNCHRONOUS, zygote, isolate=False)
    port = int(addresses(placement)[0].rpartition(":")[2])
    assert not placement.isolated
    assert not can_bind(port)
    placement.release()
    assert can_bind(port)


@pytest.mark.usefixtures("loopback")
def test_processes_have_a_loopback_that_nobody_else_is_on(zygote: Zygote) -> None:
    placement = placed(SYNCHRONOUS, zygote)
    namespaces = {seat.member.namespace for seat in placement.seats}
    assert placement.isolated
    assert len(namespaces) == 1
    assert link_of(namespaces.pop()) != link_of("/proc/self/ns/net")


@pytest.mark.usefixtures("loopback")
def test_trials_that_live_at_once_share_no_loopback_and_the_next_trial_takes_one_over(zygote: Zygote) -> None:
    first, second = placed(SYNCHRONOUS, zygote), placed(SYNCHRONOUS, zygote)
    assert first.seats[0].member.namespace != second.seats[0].member.namespace
    first.release()
    third = placed(SYNCHRONOUS, zygote)
    assert third.seats[0].member.namespace == first.seats[0].member.namespace
    assert not set(addresses(third)) & set(addresses(first)), "a port is not used twice in a row"


@pytest.mark.usefixtures("loopback")
def test_nothing_is_left_when_the_run_is_over(zygote: Zygote, link_that_stays: Callable[[str], str]) -> None:
    placement = placed(SYNCHRONOUS, zygote)
    link = link_that_stays(placement.seats[0].member.namespace or "")
    assert members(link)
    zygote.close()
    assert within(5, lambda: not members(link))


def test_where_the_kernel_gives_no_namespace_it_says_so_and_holds_ports(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Grounds) -> Ground:
        raise NotAvailable("the kernel refuses a network namespace")

    monkeypatch.setattr(Grounds, "loopback", refuse)
    placement = placed(SYNCHRONOUS, zygote)
    assert not placement.isolated
    assert {seat.member.namespace for seat in placement.seats} == {""}
    placement.release()
    placed(SYNCHRONOUS, zygote).release()
    said = capsys.readouterr().err
    assert said.startswith("launcher 'local': the kernel refuses a network namespace: ")
    assert "listen on every address" in said
    assert said.count("\n") == 1, "it is said once a run"


def test_a_namespace_that_is_slow_to_come_exposes_nobody_and_the_next_trial_asks_again(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(_: Grounds) -> Ground:
        raise TooSlow("a network namespace did not answer within 10 s")

    with monkeypatch.context() as at_first:
        at_first.setattr(Grounds, "loopback", slow)
        with pytest.raises(NotNow, match="did not answer within 10 s; --no-isolate does without namespaces"):
            placed(SYNCHRONOUS, zygote)
    placed(SYNCHRONOUS, zygote).release()


def test_a_network_that_is_slow_to_come_may_come_for_the_next_trial(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> Ground:
        raise TooSlow("a network namespace did not answer within 10 s")

    monkeypatch.setattr(Grounds, "network", slow)
    with pytest.raises(NotNow, match="network 'rate=100mbit': a network namespace did not answer"):
        placed(NETWORKED, zygote)


def test_who_wants_no_namespace_is_not_warned(zygote: Zygote, capsys: pytest.CaptureFixture[str]) -> None:
    placement = placed(SYNCHRONOUS, zygote, isolate=False)
    assert not placement.isolated
    placement.release()
    assert capsys.readouterr().err == ""


def test_a_network_that_cannot_be_had_is_the_trials_reason(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotPlace, match=r"network 'rate=100mbit': emulated networks need root") as refused:
        placed(NETWORKED, zygote)
    assert not isinstance(refused.value, NotNow), "no other trial of this run would fare better"


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
def test_on_a_network_every_process_has_a_host_and_what_was_measured_is_kept(zygote: Zygote) -> None:
    placement = placed(NETWORKED, zygote)
    assert placement.isolated
    assert len({link_of(seat.member.namespace) for seat in placement.seats}) == 3
    assert [address.rpartition(":")[0] for address in addresses(placement)] == ["10.77.0.1", "10.77.0.2", "10.77.0.3"]
    assert placement.network is not None
    assert placement.network.bandwidth_bits_per_s < 110e6


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
def test_a_network_is_there_before_the_first_trial_and_what_cannot_be_had_is_that_trials_affair(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = NETWORKED.model_copy(update={"workers": 251})
    launchers()["local"].open([request(of) for of in (SYNCHRONOUS, NETWORKED, NETWORKED, refused)], zygote)
    monkeypatch.setattr(EmulatedNetwork, "measure", lambda _: pytest.fail("a trial waited for its network"))
    assert placed(NETWORKED, zygote).network is not None
    with pytest.raises(CannotPlace, match="a network of 251 hosts"):
        placed(refused, zygote)


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
def test_a_network_serves_trial_after_trial_unless_a_cable_was_pulled(zygote: Zygote) -> None:
    first = placed(NETWORKED, zygote)
    hosts = [seat.member.namespace for seat in first.seats]
    first.release()
    second = placed(NETWORKED, zygote)
    assert [seat.member.namespace for seat in second.seats] == hosts
    assert second.links is not None
    second.links.cut("worker", 2)
    second.links.restore("worker", 2)
    second.release()
    third = placed(NETWORKED, zygote)
    assert not {seat.member.namespace for seat in third.seats} & set(hosts)


SPEAKS = """
import sys
sys.path.insert(0, {root!r})
from harness.trial.namespace import enter
enter({namespace!r})
import json, socket
server = socket.create_server(({host!r}, {port}))
print(json.dumps("listening"), flush=True)
server.settimeout(20)
server.accept()
"""
HEARS = """
import sys
sys.path.insert(0, {root!r})
from harness.trial.namespace import enter
enter({namespace!r})
import json, socket
try:
    socket.create_connection(({host!r}, {port}), 1).close()
    print(json.dumps(True))
except OSError:
    print(json.dumps(False))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
def test_a_link_is_cut_and_restored_by_the_name_of_the_process_on_it(zygote: Zygote) -> None:
    placement = placed(SERVED.model_copy(update={"network": "rate=100mbit"}), zygote)
    assert placement.links is not None
    seats = {seat.member.name: seat.member for seat in placement.seats}
    host, _, port = seats["ps 0"].cluster["ps"][0].rpartition(":")
    known = {"root": str(Path.cwd()), "host": host, "port": int(port)}
    server = subprocess.Popen(
        [sys.executable, "-c", SPEAKS.format(namespace=seats["ps 0"].namespace, **known)], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        server.stdout.readline()
        asks = [sys.executable, "-c", HEARS.format(namespace=seats["worker 1"].namespace, **known)]
        placement.links.cut("ps", 0)
        assert json.loads(subprocess.run(asks, capture_output=True, check=True).stdout) is False
        placement.links.restore("ps", 0)
        assert json.loads(subprocess.run(asks, capture_output=True, check=True).stdout) is True
    finally:
        server.kill()
        server.wait()
    with pytest.raises(KeyError):
        placement.links.cut("ps", 1)
