"""Processes placed on agents at ports that each agent holds for its own."""

import contextlib
from collections.abc import Sequence

from harness.run.launchers.agents.dealing import dealt, first_devices
from harness.run.launchers.agents.remote import Agent, NoAnswer
from harness.run.launchers.base import NotNow, Placement, Seat, seated, tasks_of
from harness.spec.address import joined
from harness.trial.protocol import Request


def place_by_ports(launcher: str, request: Request, agents: Sequence[Agent]) -> Placement:
    """The processes of `request`, workers first, over `agents` in their order; NotNow when ports are short."""
    tasks = tasks_of(request.cell)
    hosts = dealt(tasks, len(agents))
    first = first_devices(hosts, tasks, request.cell.replicas)
    release = contextlib.ExitStack()
    free = []
    for number, agent in enumerate(agents):
        try:
            ports = agent.hold(hosts.count(number))
        except NoAnswer as error:
            release.close()
            raise NotNow(f"launcher '{launcher}': {error}") from None
        release.callback(agent.free, list(ports))
        free.append(ports)
        if len(ports) != hosts.count(number):
            release.close()
            raise NotNow(f"launcher '{launcher}': {agent.name} could not take {hosts.count(number)} ports")
    addresses = {task: joined(agents[host].address, free[host].pop(0)) for task, host in zip(tasks, hosts, strict=True)}
    seats = [
        Seat(member.model_copy(update={"first_device": device}), agents[host])
        for member, host, device in zip(seated(request, addresses), hosts, first, strict=True)
    ]
    return Placement(seats, release=release.close)
