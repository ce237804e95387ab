"""The parent's end of an agent: it is used as a zygote is, and its processes as any that were forked here."""

import contextlib
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from pydantic import ValidationError

from harness.environment import Facts
from harness.errors import HarnessError
from harness.protocol.channel import Channel
from harness.protocol.hosting import EXIT_LIMIT_S, STDERR_CHARACTERS, OneProcess
from harness.protocol.messages import Report, Request
from harness.run.data import DataKey
from harness.run.launchers.agents.messages import Equipment, Identity, News, Order
from harness.run.launchers.agents.wire import Wire, WireError
from harness.run.process.zygote import SLICE_S, START_LIMIT_S

ANSWER_LIMIT_S = 5.0
"""How long an agent may take to answer a question that it need not wait for anything to answer."""


class NoAnswer(HarnessError):
    """An agent did not answer a question in time, or is gone."""


class RemoteChannel(Channel):
    """A process's channel, through its agent, whose thread must never wait until somebody reads: it also takes in what
    others wait for. So lines lie in a queue, and a socket pair says only that there are some, and when there are no
    more."""

    def __init__(self, agent: "Agent", number: int) -> None:
        ours, self.arriving = socket.socketpair()
        self.arriving.setblocking(False)
        super().__init__(ours)
        self._agent = agent
        self._number = number
        self._lines: deque[str] = deque()

    def deliver(self, line: str) -> None:
        """Take a line of the process's; for the agent's thread."""
        self._lines.append(line)
        with contextlib.suppress(OSError):  # full of earlier word, or nobody reads any more
            self.arriving.send(b".")

    def receive_line(self, timeout_s: float | None = None) -> str | None:
        """See `Channel`."""
        while not self._lines:
            if self.connection.fileno() < 0:
                raise EOFError("the channel is closed")
            readable, _, _ = select.select([self.connection], [], [], timeout_s)
            if not readable:
                return None
            if not self.connection.recv(1 << 20) and not self._lines:
                raise EOFError("the other side of the channel is gone")
        return self._lines.popleft()

    @property
    def holds_line(self) -> bool:
        """See `Channel`."""
        return bool(self._lines) or self.connection.fileno() < 0

    def send_json(self, text: str) -> None:
        """Send one line; OSError when the agent is gone."""
        self._agent.order(Order(do="tell", number=self._number, text=text))

    def close(self) -> None:
        """Close both ends here, and the one there."""
        with contextlib.suppress(OSError):
            self._agent.order(Order(do="hang_up", number=self._number))
        self.arriving.close()
        super().close()


class RemoteChild(OneProcess):
    """A process that an agent has forked; see `harness.protocol.hosting.Child`."""

    pids: tuple[int, ...] = ()

    def __init__(self, agent: "Agent", number: int) -> None:
        self.agent = agent
        self.number = number
        self.status: int | None = None
        self.out_of_memory = False
        self.channel = RemoteChannel(agent, number)

    @property
    def host(self) -> str:
        """The agent's."""
        return self.agent.host

    @property
    def lost(self) -> bool:
        """Whether the agent is gone, so that nobody knows how this ended."""
        return self.agent.gone is not None and self.status is None

    @property
    def gone(self) -> str:
        """Why nobody knows how it ended."""
        return f"{self.agent.name} is gone ({self.agent.gone})"

    def stderr_tail(self, characters: int = STDERR_CHARACTERS) -> str:
        """The end of what it wrote to standard error and output."""
        answer = self.agent.question(Order(do="tail", number=self.number, count=characters), "tail")
        return answer.text if answer is not None else ""

    def signal(self, number: int) -> None:
        """Send a signal, if it still lives."""
        if self.status is None:
            with contextlib.suppress(OSError):
                self.agent.order(Order(do="signal", number=self.number, signal=number))

    def result_of_task(self, begun: float, limit_s: float, check: Callable[[], None]) -> str | None:
        """What it says of the one task that it does, `begun` then: None when it went well, else the reason."""
        try:
            while time.monotonic() < begun + limit_s:
                check()
                select.select([self.channel.connection], [], [], 0.2)
                line = self.channel.receive_line(0.0)
                outcome = None if line is None else Report.model_validate_json(line).outcome
                if outcome is not None:
                    return None if outcome.status == "ok" else outcome.reason
        except EOFError:
            return "its process ended without a word"
        return f"no end within {limit_s:g} s"

    def kill(self) -> None:
        """End it at once and wait until it is gone; an agent that cannot say so is given up."""
        self.signal(signal.SIGKILL)
        if self.wait() is None:
            self.agent.hang_up(f"it did not end a process within {EXIT_LIMIT_S:g} s")

    def wait(self, limit_s: float = EXIT_LIMIT_S) -> int | None:
        """Its exit status, once it is ending; None after `limit_s`."""
        self.agent.wait_for(lambda: self.status is not None, limit_s)
        return self.status

    def release(self) -> None:
        """Forget it, here and there."""
        self.agent.forget(self)
        self.channel.close()


class Agent:
    """One agent, which forks children; see `harness.protocol.hosting.ForkServer`."""

    def __init__(self, wire: Wire, identity: Identity, peer: str, joined: int, news: Callable[["Agent"], None]) -> None:
        self.identity = identity
        self.address = identity.address or peer
        """What other hosts reach it at."""
        self.name = f"agent {joined} on {identity.node or identity.host} ({self.address})"
        self.machine = identity.machine.partition(" ")[0] or identity.host
        """Which machine its trials run on: agents in several namespaces of one share its processors."""
        self.host = identity.node or identity.host
        """What records call its host."""
        self.facts: Facts = {}
        """What its host is, known once it is ready."""
        self.gone: str | None = None
        """Why it is, once it is."""
        self.ready = False
        self.scratch = ""
        """A folder on its host that its processes share."""
        self.prepared: set[tuple[str, DataKey]] = set()
        """Data sets, with their folders, that are known to be there, each with the engine that made them ready."""
        self._equipment: dict[str, Equipment | str] = {}
        """What the host has of an engine, or why it has not."""
        self._wire = wire
        self._news = news
        self._children: dict[int, RemoteChild] = {}
        self._next = 0
        self._heard = threading.Condition()
        self._asked: set[tuple[str, int]] = set()
        """Questions that somebody waits for."""
        self._answers: dict[tuple[str, int], News] = {}
        self._left_with: int | None = None

    @property
    def alive(self) -> bool:
        """Whether it is still there."""
        return self.gone is None

    def listen(self) -> None:
        """Take in what the agent says until it is gone; for a thread."""
        try:
            while self.gone is None:
                self._take_in(News.model_validate_json(self._wire.receive()))
        except WireError as error:
            self.hang_up(str(error))
        except ValidationError:
            self.hang_up("it said what is not in the protocol")

    def _take_in(self, news: News) -> None:
        if news.of == "ready":
            self.scratch = news.text
            self.facts = dict(news.facts)
            self.ready = True
            self._news(self)
            return
        if news.of == "failed":
            self.hang_up(news.text)
            return
        if news.of == "imported":
            engine, _, why_not = news.text.partition(" ")
            with self._heard:
                self._equipment[engine] = news.equipment or why_not
                self._heard.notify_all()
            return
        late = False
        with self._heard:
            target = self._children.get(news.number)
            if news.of in ("tail", "held"):
                late = (news.of, news.number) not in self._asked
                if not late:
                    self._answers[news.of, news.number] = news
            elif target is not None:
                self._about(target, news)
            self._heard.notify_all()
        if late:
            self.free(news.ports)  # nobody waits for these ports any more, and nobody else would give them back

    def _about(self, target: RemoteChild, news: News) -> None:
        if news.of == "exited":
            target.status, target.out_of_memory = news.status, news.out_of_memory
        if news.of == "line":
            target.channel.deliver(news.text)
        elif news.of == "closed":
            with contextlib.suppress(OSError):  # nobody reads it any more
                target.channel.arriving.shutdown(socket.SHUT_WR)

    def order(self, order: Order) -> None:
        """Send one order; OSError when the agent is gone."""
        if self.gone is not None:
            raise BrokenPipeError(self.gone)
        try:
            self._wire.send(order)
        except WireError as error:
            self.hang_up(str(error))
            raise BrokenPipeError(str(error)) from None

    def question(self, order: Order, of: str, limit_s: float = ANSWER_LIMIT_S) -> News | None:
        """The agent's answer, or None when it is gone or does not answer."""
        key = (of, order.number)
        with self._heard:
            self._answers.pop(key, None)
            self._asked.add(key)
        with contextlib.suppress(OSError):
            self.order(order)
        with self._heard:
            self._heard.wait_for(lambda: key in self._answers or self.gone is not None, limit_s)
            self._asked.discard(key)
            return self._answers.pop(key, None)

    def hold(self, count: int, base: int = 0) -> list[int]:
        """`count` ports of its host that nobody else is given until `free`; none when they cannot be had.

        NoAnswer when it does not say so in time; ports that it takes later are given back then.
        """
        number = self._number()
        answer = self.question(Order(do="hold", number=number, count=count, base=base), "held")
        if answer is None:
            raise NoAnswer(
                f"{self.name} did not take ports within {ANSWER_LIMIT_S:g} s"
                if self.gone is None
                else f"{self.name} is gone ({self.gone})"
            )
        if len(answer.ports) != count:
            self.free(answer.ports)
            return []
        return answer.ports

    def free(self, ports: list[int]) -> None:
        """Give ports back."""
        for port in ports:
            with contextlib.suppress(OSError):
                self.order(Order(do="free", base=port))

    def hang_up(self, reason: str) -> None:
        """End the connection: what the agent has started ends there, and every channel here."""
        with self._heard:
            if self.gone is not None:
                return
            self.gone = reason
            for child in self._children.values():
                with contextlib.suppress(OSError):
                    child.channel.arriving.shutdown(socket.SHUT_WR)
            self._heard.notify_all()
        self._wire.close()
        self._news(self)

    def _number(self) -> int:
        with self._heard:
            number, self._next = self._next, self._next + 1
        return number

    def spawn(self, request: Request) -> RemoteChild:
        """Fork a fresh process for `request` there; one that is gone at once when the agent is."""
        child = RemoteChild(self, self._number())
        with self._heard:
            self._children[child.number] = child
        try:
            own = request.model_copy(update={"scratch": self.scratch})
            self.order(Order(do="spawn", number=child.number, request=own))
        except OSError:
            child.channel.arriving.shutdown(socket.SHUT_WR)
        return child

    def wait_for(self, done: Callable[[], bool], limit_s: float) -> None:
        """Return once what the agent has said makes `done` true, or it is gone, or after `limit_s`."""
        with self._heard:
            self._heard.wait_for(lambda: done() or self.gone is not None, max(0.0, limit_s))

    def preload(self, engine: str) -> None:
        """Have the host preload an engine, unless it has, and do not wait."""
        with contextlib.suppress(OSError):
            if not isinstance(self._equipment.get(engine), Equipment):
                self._equipment.pop(engine, None)  # what was missing may have been installed
                self.order(Order(do="import", text=engine))

    def equipment(self, engine: str, check: Callable[[], None]) -> Equipment | str:
        """What the host has of an engine that it was to preload, once it has, or the reason why it cannot."""
        deadline = time.monotonic() + START_LIMIT_S
        while engine not in self._equipment and self.gone is None and time.monotonic() < deadline:
            check()
            self.wait_for(lambda: engine in self._equipment, SLICE_S)
        return self._equipment.get(engine) or self.gone or f"engine {engine} was not imported in {START_LIMIT_S:g} s"

    def forget(self, child: RemoteChild) -> None:
        """A process that has ended is of no more interest, there neither."""
        with self._heard:
            self._children.pop(child.number, None)
        with contextlib.suppress(OSError):
            self.order(Order(do="release", number=child.number))

    @contextlib.contextmanager
    def at_task(self, request: Request) -> Iterator[RemoteChild]:
        """A process that does one task, and nothing of it afterwards."""
        child = self.spawn(request)
        try:
            yield child
        finally:
            child.kill()
            child.release()
