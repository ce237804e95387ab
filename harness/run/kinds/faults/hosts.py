"""Where the processes of a job run: on loopback, or on a host each, whose cable can be pulled."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from harness.protocol.messages import Request
from harness.run.launchers import launchers
from harness.run.launchers.base import Seat, memberships_of, tasks_of
from harness.run.network import EmulatedNetwork
from harness.run.process.zygote import Zygote
from harness.spec.network import Network

PORT = 20000
"""Of every process: each has an address of its own."""


@dataclass(frozen=True)
class Hosts:
    """Places for the processes; without seats the job is one process. The network is there where links can be cut."""

    seats: list[Seat]
    network: EmulatedNetwork | None = None


@contextlib.contextmanager
def hosts_for(request: Request, zygote: Zygote, alone: bool, links: bool) -> Iterator[Hosts]:
    """Hold places while entered. CannotPlace, or NotAvailable with the reason where links cannot be emulated."""
    if alone:
        yield Hosts([])
    elif links:
        tasks = tasks_of(request.cell)
        with EmulatedNetwork(Network(), len(tasks)) as network:
            addresses = {task: f"{host.address}:{PORT}" for task, host in zip(tasks, network.hosts, strict=True)}
            members = [
                member.model_copy(update={"namespace": host.namespace, "user_namespace": host.user_namespace or ""})
                for member, host in zip(memberships_of(request, addresses), network.hosts, strict=True)
            ]
            yield Hosts([Seat(member, zygote) for member in members], network)
    else:
        placement = launchers()["local"].place(request, zygote)
        try:
            yield Hosts(placement.seats)
        finally:
            placement.release()
