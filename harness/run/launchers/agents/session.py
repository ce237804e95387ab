"""The agents of one run as a launcher uses them: asked for once, waited for, given processes to start."""

import contextlib
import os
import shlex
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, TextIO

from harness.protocol.messages import LauncherOptions, Request
from harness.run.data import data_key, may_refuse_data, preparation, preparation_limit_s, unavailable
from harness.run.launchers.agents.assignment import hosts_needed
from harness.run.launchers.agents.handshake import LEAST_TOKEN, new_token
from harness.run.launchers.agents.identity import equipment_of, unequal
from harness.run.launchers.agents.meeting import ListenError, Meeting
from harness.run.launchers.agents.messages import Equipment
from harness.run.launchers.agents.placement import place_by_ports
from harness.run.launchers.agents.remote import Agent, RemoteChild
from harness.run.launchers.base import CannotPlace, Launcher, NotNow, Placement, tell
from harness.run.process.startup import TOKEN_VARIABLE
from harness.run.process.zygote import SLICE_S, START_LIMIT_S, Zygote
from harness.trial.engines import DEFAULT
from harness.visible import plural

MOST_WAITS = 3
AGAIN_S = 30.0
"""A launcher that could not begin is asked no more often than this."""
HINT = "--join-timeout waits longer"
CONNECT_S = 20.0
"""How long an agent tries to reach the sweep; one whose sweep is gone ends after so long."""


class Session:
    """Listens, and knows the agents that have joined."""

    _given: ClassVar[str] = ""

    def __init__(self, launcher: str, listen: str, options: LauncherOptions, out: TextIO | None = None) -> None:
        self.launcher_options = options
        self._launcher = launcher
        self._out = out
        self.meeting = Meeting(listen, self._given_token() or new_token(), self.say)
        self.since = time.monotonic()
        """When something last changed: from then on those who are missing have their time."""
        self._equipment: dict[str, Equipment] = {}
        """Of engines here."""
        self._known: list[bool] = []
        self._warned: set[str] = set()

    @classmethod
    def _given_token(cls) -> str:
        """What the person has set, also for an earlier session of this process: the first takes it out of the
        environment, which the user's own code sees."""
        if given := os.environ.get(TOKEN_VARIABLE, "").strip():
            if len(given) < LEAST_TOKEN:
                length = plural(len(given), "character")
                raise CannotPlace(f"{TOKEN_VARIABLE} has {length}, expected at least {LEAST_TOKEN}")
            cls._given = given
            del os.environ[TOKEN_VARIABLE]
        return cls._given

    def say(self, text: str) -> None:
        """Tell the person, whatever else is written to standard output."""
        tell(self._launcher, text, self._out)

    def warn_once(self, text: str) -> None:
        """Tell the person what every trial would have to say."""
        if text not in self._warned:
            self._warned.add(text)
            self.say(text)

    def command(self) -> str:
        """What is to be run on each host."""
        token, address = map(shlex.quote, (self.meeting.token, self.meeting.address()))
        engines = "".join(f" {shlex.quote(flag)}" for flag in self._engines)
        return f"{TOKEN_VARIABLE}={token} python -m harness worker --connect {address}{engines}"

    def agent_command(self) -> list[str]:
        """What a launcher runs on each of its hosts; the token goes along in the environment."""
        here = [sys.executable, "-m", "harness", "worker"]
        return [*here, "--connect", self.meeting.address(), "--wait", f"{CONNECT_S:g}", *self._engines]

    @property
    def _engines(self) -> list[str]:
        given = self.launcher_options.engine_python
        return [f"--engine-python={given}"] if given else []

    def wait(self, hosts: int, check: Callable[[], None], launcher: "AgentLauncher") -> list[Agent]:
        """The first `hosts` living agents, by node or as they joined.

        NotNow when they have not joined `join_timeout` after the last change, or three times that after this
        began (one that joins and fails over and over changes something each time), or `launcher` knows that they will
        not come. Once enough have joined, those that still import have as long as any import.
        """
        limit = time.monotonic() + MOST_WAITS * self.launcher_options.join_timeout_s
        while len(living := self.meeting.living()) < hosts:
            check()
            if (known := [agent.gone is None for agent in self.meeting.agents]) != self._known:
                self._known, self.since = known, time.monotonic()
            if (why := launcher.trouble(self)) is not None:
                raise NotNow(f"launcher '{self._launcher}': {why}")
            patience = self.launcher_options.join_timeout_s
            until = min(limit, self.since + patience)
            if sum(known) >= hosts and patience < START_LIMIT_S:
                patience, until = START_LIMIT_S, self.since + START_LIMIT_S
            if time.monotonic() >= until:
                raise NotNow(self._missing(hosts, living, patience, launcher.detail(self)))
            with self.meeting.changed:
                self.meeting.changed.wait(SLICE_S)
        return sorted(living, key=lambda agent: agent.identity.node)[:hosts]

    def _missing(self, hosts: int, living: Sequence[Agent], patience: float, detail: str | None) -> str:
        there = f" ({', '.join(agent.name for agent in living)})" if living else ""
        text = (
            f"launcher '{self._launcher}': {len(living)} of {hosts} hosts{there} joined at {self.meeting.address()} "
            f"within {patience:g} s; {hosts - len(living)} missing"
        )
        gone = [f"{agent.name} is gone ({agent.gone})" for agent in self.meeting.agents if agent.gone]
        importing = [f"{a.name} still imports TensorFlow" for a in self.meeting.agents if not a.gone and not a.ready]
        return "; ".join(
            [text, *([detail] if detail else []), *importing, *gone[-2:], *self.meeting.refusals[-2:], HINT]
        )

    def import_engine(self, agents: Sequence[Agent], zygote: Zygote) -> None:
        """Have each host preload what `zygote` has, once; CannotPlace where it cannot, or has another version."""
        if (engine := zygote.engine) == DEFAULT:
            return
        if engine not in self._equipment:
            self._equipment[engine] = equipment_of(engine, zygote.python)
        for agent in agents:
            agent.preload(engine)
        for agent in agents:
            theirs = agent.equipment(engine, zygote.check)
            why_not = theirs if isinstance(theirs, str) else unequal(self._equipment[engine], theirs)
            if why_not:
                both = "" if isinstance(theirs, str) else "; both must have the same"
                raise CannotPlace(f"launcher '{self._launcher}': {agent.name}: {why_not}{both}")

    def prepare(self, agents: Sequence[Agent], request: Request, check: Callable[[], None]) -> None:
        """Make the data of `request` ready on each host, once; CannotPlace where that fails."""
        if request.cell.data_set is None:
            return
        key = (request.engine, data_key(request))
        for some in _side_by_side([agent for agent in agents if key not in agent.prepared]):
            with contextlib.ExitStack() as stack:
                tasks = [stack.enter_context(agent.at_task(preparation(request))) for agent in some]
                stack.callback(_kill, tasks)  # before any of them is waited for
                begun = time.monotonic()
                for agent, task in zip(some, tasks, strict=True):
                    reason = task.result_of_task(begun, preparation_limit_s(request), check)
                    if reason is not None:
                        raise CannotPlace(unavailable(request, reason, agent.name))
                    agent.prepared.add(key)


def _kill(tasks: Sequence[RemoteChild]) -> None:
    for task in tasks:
        task.signal(signal.SIGKILL)


def _side_by_side(agents: Sequence[Agent]) -> Iterator[list[Agent]]:
    """In their order, those that may make the same data ready at once: the first alone, since on a disk that all share
    the others then find them, and from there on as many as are on machines of their own."""
    some = list(agents[:1])
    yield some
    some = []
    for agent in agents[1:]:
        if any(agent.machine == other.machine for other in some):
            yield some
            some = []
        some.append(agent)
    yield some


class AgentLauncher(Launcher, ABC):
    """A launcher whose processes are started by agents. All cells of a run are placed by them, single ones too."""

    elsewhere = True

    def __init__(self) -> None:
        self._sessions: dict[LauncherOptions, Session] = {}
        self._failures: dict[LauncherOptions, CannotPlace] = {}
        """Why there is no session."""
        self._tried_at: dict[LauncherOptions, float] = {}

    @abstractmethod
    def begin(self, options: LauncherOptions, hosts: int) -> Session:
        """Start, or have somebody start, agents on `hosts` hosts; CannotPlace with the reason."""

    def end(self, session: Session) -> None:
        """Take back what `begin` has started; the agents are gone already."""

    def trouble(self, session: Session) -> str | None:
        """Why no more agents will come, or None."""
        return None

    def detail(self, session: Session) -> str | None:
        """What is known of those who have not come yet."""
        return None

    def open(self, requests: Sequence[Request], zygote: Zygote) -> None:
        """Have agents started for the largest of `requests`, and wait until they and the data are there."""
        if not requests:
            return
        hosts = max(hosts_needed(request.cell, request.launcher_options.hosts) for request in requests)
        try:
            session = self.session(requests[0], zygote, hosts)
            agents = session.wait(hosts, zygote.check, self)
            session.import_engine(agents, zygote)
            for request in sorted(requests, key=may_refuse_data):
                session.prepare(agents, request, zygote.check)
        except CannotPlace:
            return  # each trial that wants to be placed will say so in its record

    def session(self, request: Request, zygote: Zygote, hosts: int = 0) -> Session:
        """The session for `request`, begun when it is the first; it ends with `zygote`.

        CannotPlace for a side with files of its own, and what it failed with, again.
        """
        if not zygote.plain:
            raise CannotPlace(
                f"launcher '{self.name}': hosts run this harness as it is; a side with an environment, interpreter "
                "or revision of its own needs launcher 'local'"
            )
        options = request.launcher_options
        if (session := self._sessions.get(options)) is not None:
            return session
        failure = self._failures.get(options)
        if failure is not None and not (failure.may_pass and time.monotonic() >= self._tried_at[options] + AGAIN_S):
            raise failure
        self._tried_at[options] = time.monotonic()
        zygote.closing.callback(self._end, options)
        return self._begun(options, hosts or hosts_needed(request.cell, options.hosts))

    def _begun(self, options: LauncherOptions, hosts: int) -> Session:
        """A session that has begun; it, or why there is none, is remembered."""
        try:
            session = self.begin(options, hosts)
        except ListenError as error:
            self._failures[options] = NotNow(f"launcher '{self.name}': {error}")
            raise self._failures[options] from None
        except CannotPlace as error:
            self._failures[options] = error
            raise
        self._sessions[options] = session
        return session

    def _end(self, options: LauncherOptions) -> None:
        self._failures.pop(options, None)
        session = self._sessions.pop(options, None)
        if session is not None:
            session.meeting.close()
            self.end(session)

    def agents_for(self, request: Request, zygote: Zygote) -> list[Agent]:
        """The hosts of one trial, its data ready on each; CannotPlace when they are not there in time."""
        session = self.session(request, zygote)
        hosts = hosts_needed(request.cell, request.launcher_options.hosts)
        agents = session.wait(hosts, zygote.check, self)
        zygote.hosts.update({agent.host: agent.facts for agent in agents})
        session.import_engine(agents, zygote)
        session.prepare(agents, request, zygote.check)
        return agents

    def place(self, request: Request, zygote: Zygote) -> Placement:
        """The processes over the agents in their order, workers first."""
        return place_by_ports(self.name, request, self.agents_for(request, zygote))

    def fork_server_for(self, request: Request, zygote: Zygote) -> Agent:
        """The first host, for a trial that is one process."""
        return self.agents_for(request, zygote)[0]
