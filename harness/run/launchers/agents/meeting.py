"""Where agents join a run: a listening socket, and a thread that takes in those who have the token."""

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable, Sequence

from harness.errors import HarnessError
from harness.run.launchers.agents.handshake import JoinError, admit
from harness.run.launchers.agents.identity import own_identity
from harness.run.launchers.agents.remote import Agent
from harness.run.launchers.agents.wire import Wire, WireError
from harness.spec.address import joined, split_address

LOOPBACK = "127.0.0.1"
MOST_AT_THE_DOOR = 32
"""Connections at once that have not shown the token yet."""
MOST_REFUSALS = 32
"""Of different words, the last of which are kept."""
PAUSE_S = 0.1
"""Between two tries to take in who knocks, where the system refuses."""
NOWHERE = ("192.0.2.1", 9)
"""An address for documentation: asking for the route to it sends nothing."""


class ListenError(HarnessError):
    """Nothing can listen at the address that was asked for."""


class Meeting:
    """Listens from the start; `close` ends every agent that has joined."""

    def __init__(self, listen: str, token: str, tell: Callable[[str], None]) -> None:
        self.token = token
        self._tell = tell
        self.agents: list[Agent] = []
        """Those that have joined, in that order; also those that are gone since."""
        self._refusals: dict[str, int] = {}
        """How often each was said; the last are kept."""
        self.changed = threading.Condition()
        self._ours = own_identity()
        self._socket = _listening(listen or LOOPBACK)
        self._closed = False
        self._door: list[socket.socket] = []
        """Connections that have not shown the token yet, the oldest first."""
        threading.Thread(target=self._accept, name="meeting", daemon=True).start()

    @property
    def host(self) -> str:
        """The address it listens on."""
        return str(self._socket.getsockname()[0])

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._socket.getsockname()[1])

    def address(self) -> str:
        """`host:port` for agents to connect to."""
        host = self.host
        if host in ("0.0.0.0", "::"):  # which of this machine's addresses is meant, its route to elsewhere tells
            host = facing(NOWHERE[0]) or socket.gethostname()
        return joined(host, self.port)

    def living(self) -> list[Agent]:
        """Agents that can be given work."""
        with self.changed:
            return [agent for agent in self.agents if agent.ready and not agent.gone]

    def close(self) -> None:
        """Stop listening and let every agent go."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self.changed:
            agents = list(self.agents)
        for agent in agents:
            agent.hang_up("the run is over")

    def _accept(self) -> None:
        said = ""
        while not self._closed:
            try:
                self._welcome(*self._socket.accept())
            except (OSError, RuntimeError) as error:  # closed; or passing: no descriptor or thread, or who knocked left
                reason = getattr(error, "strerror", None) or str(error)
                if not self._closed and reason != said:
                    self.refused(f"no worker can join for now: {reason}")
                said = reason
                time.sleep(PAUSE_S)  # no descriptor is free the sooner for asking without a rest
                continue
            said = ""

    def _welcome(self, connection: socket.socket, peer: Sequence[object]) -> None:
        """A thread for who knocks. RuntimeError where the system has none, and the connection is closed."""
        self._let_in(connection)
        try:
            threading.Thread(target=self._admit, args=(connection, str(peer[0])), daemon=True).start()
        except RuntimeError:
            self._leave_the_door(connection)
            connection.close()
            raise

    def _let_in(self, connection: socket.socket) -> None:
        """To the door, from which the oldest goes where there are too many: who has the token shows it at once."""
        with self.changed:
            self._door.append(connection)
            if len(self._door) > MOST_AT_THE_DOOR:
                with contextlib.suppress(OSError):
                    self._door.pop(0).shutdown(socket.SHUT_RDWR)  # its own thread sees that, and closes it

    def _admit(self, connection: socket.socket, peer: str) -> None:
        wire = None
        try:
            wire = Wire(connection)
            identity = admit(wire, self.token, self._ours)
        except (JoinError, OSError) as error:
            self.refused(f"a worker at {peer} was refused: {error}")
            if wire is not None:
                _see_off(wire)
            return
        finally:
            self._leave_the_door(connection)
        with self.changed:
            agent = Agent(wire, identity, peer, len(self.agents) + 1, self._news)
            self.agents.append(agent)
        if self._closed:
            agent.hang_up("the run is over")
        agent.listen()

    def _leave_the_door(self, connection: socket.socket) -> None:
        with self.changed:
            self._door = [other for other in self._door if other is not connection]

    @property
    def refusals(self) -> list[str]:
        """Why others were not let in, the last words last."""
        with self.changed:
            return list(self._refusals)

    def refused(self, text: str) -> None:
        """Keep it and tell it; what is said over and over is told as often as its count has another digit."""
        with self.changed:
            times = self._refusals.pop(text, 0) + 1
            self._refusals[text] = times
            if len(self._refusals) > MOST_REFUSALS:
                del self._refusals[next(iter(self._refusals))]
            self.changed.notify_all()
        if str(times).rstrip("0") == "1":
            self._tell(text if times == 1 else f"{text} ({times:,} times)")

    def _news(self, agent: Agent) -> None:
        """An agent is ready, or gone."""
        with self.changed:
            agent.host = self._name_of(agent)
            self.changed.notify_all()
        if self._closed:
            return
        if agent.gone:
            self._tell(f"{agent.name} is gone: {agent.gone}")
        else:
            confined = agent.identity.confined
            self._tell(f"{agent.name} is ready" + (f"; it may use {confined} of its host" if confined else ""))

    def _name_of(self, agent: Agent) -> str:
        """What records call its host: two machines of one name are told apart by their addresses."""
        machine = agent.facts.get("machine.id")
        others = (other for other in self.agents if other.host == agent.host and other.facts)
        if any(other.facts.get("machine.id") != machine for other in others):
            return f"{agent.host} ({agent.address})"
        return agent.host


def facing(host: str) -> str | None:
    """This machine's address on the way to `host`, or None when there is none. Sends nothing."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, NOWHERE[1], type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return None


def _listening(listen: str) -> socket.socket:
    host, port = split_address("listen", listen)
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address[0], address[1]), family=family, backlog=64)
    except OSError as error:
        # create_server adds the address to what went wrong
        reason = (error.strerror or str(error)).partition(" (while")[0]
        remedy = (
            "; give another port, or the address alone for any that is free" if error.errno == errno.EADDRINUSE else ""
        )
        raise ListenError(f"listen: nothing can listen at '{listen}': {reason}{remedy}") from None


def _see_off(wire: Wire) -> None:
    """Read on for a moment, so that closing does not overtake the words just sent, and close."""
    with contextlib.suppress(WireError, OSError):
        wire.connection.settimeout(1.0)
        wire.take_in()
    wire.close()
