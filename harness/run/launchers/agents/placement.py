"""Processes placed on agents at ports that each agent holds for its own."""

import contextlib
from collections.abc import Sequence

from harness.protocol.messages import Request
from harness.run.launchers.agents.assignment import first_devices, hosts_of_tasks
from harness.run.launchers.agents.remote import Agent, NoAnswer
from harness.run.launchers.base import NotNow, Placement, Seat, memberships_of, tasks_of
from harness.spec.address import joined


def place_by_ports(launcher: str, request: Request, agents: Sequence[Agent]) -> Placement:
    """The processes of `request`, workers first, over `agents` in their order; NotNow when ports are short."""
    tasks = tasks_of(request.cell)
    hosts = hosts_of_tasks(tasks, len(agents))
    first = first_devices(hosts, tasks, request.cell.shape.replicas)
    free = []
    with contextlib.ExitStack() as holding:
        for number, agent in enumerate(agents):
            free.append(hold_ports(launcher, agent, hosts.count(number), holding))
            if len(free[-1]) != hosts.count(number):
                raise NotNow(f"launcher '{launcher}': {agent.name} could not take {hosts.count(number)} ports")
        release = holding.pop_all()
    addresses = {task: joined(agents[host].address, free[host].pop(0)) for task, host in zip(tasks, hosts, strict=True)}
    seats = [
        Seat(member.model_copy(update={"first_device": device}), agents[host])
        for member, host, device in zip(memberships_of(request, addresses), hosts, first, strict=True)
    ]
    return Placement(seats, release=release.close)


def hold_ports(launcher: str, agent: Agent, count: int, until: contextlib.ExitStack, base: int = 0) -> list[int]:
    """`count` ports, from `base` on where it is given, that `agent` holds until `until` is closed; none when they
    cannot be had, NotNow when it does not say so in time."""
    try:
        ports = agent.hold(count, base)
    except NoAnswer as error:
        raise NotNow(f"launcher '{launcher}': {error}") from None
    until.callback(agent.free, list(ports))
    return ports
