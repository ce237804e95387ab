"""Processes on this machine: every one gets a port of its own that nobody else is given."""

import socket

from harness.run.launchers import launchers
from harness.run.launchers.base import tasks_of
from harness.run.zygote import Zygote
from harness.spec import Cell
from harness.trial.protocol import Request
from tests.record.examples import cell

SYNCHRONOUS = cell(strategy="multi_worker_mirrored", workers=3, replicas=1)
SERVED = cell(strategy="parameter_server", workers=2, replicas=1, ps=1, global_batch_size=32)


def request(of: Cell) -> Request:
    """A request for a trial of `of`."""
    return Request(cell=of, seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=2)


def test_a_synchronous_trial_is_its_workers_and_a_served_one_has_a_coordinator_that_leads() -> None:
    assert tasks_of(SYNCHRONOUS) == [("worker", 0), ("worker", 1), ("worker", 2)]
    assert tasks_of(SERVED) == [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0)]
    for of, leader in ((SYNCHRONOUS, "worker 0"), (SERVED, "coordinator")):
        seats = launchers()["local"].place(request(of), Zygote()).seats
        assert [seat.member.name for seat in seats if seat.member.leads] == [leader]


def test_every_process_knows_the_address_of_every_other_and_all_are_on_loopback() -> None:
    placement = launchers()["local"].place(request(SERVED), Zygote())
    clusters = [seat.member.cluster for seat in placement.seats]
    assert all(cluster == clusters[0] for cluster in clusters)
    addresses = [address for task in clusters[0].values() for address in task]
    assert len(set(addresses)) == 4
    assert all(address.startswith("127.0.0.1:") for address in addresses)
    placement.release()


def test_a_port_is_held_until_the_trial_is_over_and_free_afterwards() -> None:
    placement = launchers()["local"].place(request(SYNCHRONOUS), Zygote())
    port = int(placement.seats[0].member.cluster["worker"][0].rpartition(":")[2])
    assert not can_bind(port)
    placement.release()
    assert can_bind(port)


def can_bind(port: int) -> bool:
    """Whether another program could take the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
        try:
            other.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
