"""Processes on hosts where somebody has started `python -m harness worker`."""

from harness.protocol.messages import LauncherOptions, Request
from harness.run.launchers.agents.assignment import first_devices, hosts_of_tasks
from harness.run.launchers.agents.identity import own_machine
from harness.run.launchers.agents.meeting import LOOPBACK
from harness.run.launchers.agents.placement import place_by_ports
from harness.run.launchers.agents.remote import Agent
from harness.run.launchers.agents.session import AgentLauncher, Session
from harness.run.launchers.base import EXPOSED, NotNow, Placement, Seat, memberships_of, tasks_of
from harness.run.network.namespace import NotAvailable, TooSlow
from harness.run.network.pool import Ground, Grounds
from harness.run.process.zygote import Zygote


class Attach(AgentLauncher):
    """Prints one command to run on each host, and waits for those who join with the run's token."""

    name = "attach"
    summary = "hosts that join by one command each, printed by the sweep"

    def __init__(self) -> None:
        super().__init__()
        self._grounds: dict[Session, Grounds] = {}
        """The namespaces of a session's trials, which outlive each of them."""

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
        private = self._private_placement(request, agents, session)
        return private if private is not None else place_by_ports(self.name, request, agents)

    def end(self, session: Session) -> None:
        """Give up its network namespaces."""
        if (grounds := self._grounds.pop(session, None)) is not None:
            grounds.close()

    def _private_placement(self, request: Request, agents: list[Agent], session: Session) -> Placement | None:
        """Seats in a network namespace, where all agents are this machine's: TensorFlow's servers listen on every
        address that they find, and on loopback alone is what was asked for. None where that cannot be had, or is not
        wanted."""
        here = own_machine() if request.isolate else ""
        if not here or any(agent.identity.machine != here or agent.address != LOOPBACK for agent in agents):
            return None
        grounds = self._grounds.setdefault(session, Grounds())
        try:
            ground = grounds.loopback()
        except TooSlow as error:
            raise NotNow(f"launcher 'attach': {error}; --no-isolate does without namespaces") from None
        except NotAvailable as error:
            session.warn_once(f"{error}: {EXPOSED}")
            return None
        seats = _seats_on(ground, request, agents)
        return Placement(
            seats,
            release=lambda: grounds.give_back(ground),
            isolated=True,
            trouble=lambda: None if ground.made.there else "the process that holds its network is gone",
        )


def _seats_on(ground: Ground, request: Request, agents: list[Agent]) -> list[Seat]:
    tasks, [host] = tasks_of(request.cell), ground.hosts
    hosts = hosts_of_tasks(tasks, len(agents))
    first = first_devices(hosts, tasks, request.cell.shape.replicas)
    addresses = {task: address for task, (_, address) in zip(tasks, ground.addresses(len(tasks)), strict=True)}
    where = {"namespace": host.namespace, "user_namespace": host.user_namespace or ""}
    return [
        Seat(member.model_copy(update={"first_device": device, **where}), agents[number])
        for member, number, device in zip(memberships_of(request, addresses), hosts, first, strict=True)
    ]


LAUNCHER = Attach()
