"""Processes on hosts where somebody has started `python -m harness worker`."""

import contextlib
from collections.abc import Callable

from harness.protocol.messages import LauncherOptions, Request
from harness.run.launchers.agents.assignment import first_devices, hosts_of_tasks
from harness.run.launchers.agents.identity import own_identity
from harness.run.launchers.agents.meeting import LOOPBACK
from harness.run.launchers.agents.placement import place_by_ports
from harness.run.launchers.agents.remote import Agent
from harness.run.launchers.agents.session import AgentLauncher, Session
from harness.run.launchers.base import EXPOSED, NotNow, Placement, Seat, memberships_of, tasks_of
from harness.run.network.loopback import private_loopback
from harness.run.network.namespace import NotAvailable, TooSlow
from harness.run.process.zygote import Zygote

FIRST_PORT = 20000
"""In a namespace of its own, a trial has every port for itself."""


class Attach(AgentLauncher):
    """Prints one command to run on each host, and waits for those who join with the run's token."""

    name = "attach"
    summary = "hosts that join by one command each, printed by the sweep"

    def available(self) -> str | None:
        """Always available: the hosts may be anywhere."""
        return None

    def begin(self, options: LauncherOptions, hosts: int) -> Session:
        """Listen, and say what to run."""
        session = Session(self.name, options.listen, options)
        several = "host" if hosts == 1 else "hosts"
        session.say(
            f"waits {options.join_timeout_s:g} s for {hosts} {several}; run on each:\n\n  {session.command()}\n"
        )
        if session.meeting.host.startswith("127."):
            session.say("listens on loopback, for this machine alone; --listen ADDRESS lets other hosts join")
        return session

    def place(self, request: Request, zygote: Zygote) -> Placement:
        """The agents in the order in which they joined, workers first."""
        agents = self.agents_for(request, zygote)
        session = self.session(request, zygote)
        private = _private_placement(request, agents, session.warn_once)
        return private if private is not None else place_by_ports(self.name, request, agents)


def _private_placement(request: Request, agents: list[Agent], warn: Callable[[str], None]) -> Placement | None:
    """Seats in a network namespace, where all agents are this machine's: TensorFlow's servers listen on every
    address that they find, and on loopback alone is what was asked for. None where that cannot be had, or is not
    wanted."""
    here = own_identity().machine if request.isolate else ""
    if not here or any(agent.identity.machine != here or agent.address != LOOPBACK for agent in agents):
        return None
    stack = contextlib.ExitStack()
    try:
        host = stack.enter_context(private_loopback())
    except TooSlow as error:
        raise NotNow(f"launcher 'attach': {error}; --no-isolate does without namespaces") from None
    except NotAvailable as error:
        warn(f"{error}: {EXPOSED}")
        return None
    tasks = tasks_of(request.cell)
    hosts = hosts_of_tasks(tasks, len(agents))
    first = first_devices(hosts, tasks, request.cell.shape.replicas)
    addresses = {task: f"{host.address}:{FIRST_PORT + number}" for number, task in enumerate(tasks)}
    where = {"namespace": host.namespace, "user_namespace": host.user_namespace or ""}
    seats = [
        Seat(member.model_copy(update={"first_device": device, **where}), agents[number])
        for member, number, device in zip(memberships_of(request, addresses), hosts, first, strict=True)
    ]
    return Placement(seats, release=stack.close, isolated=True)


LAUNCHER = Attach()
