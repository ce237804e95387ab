"""The agent itself: `python -m harness worker` on each host."""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.environment import facts
from harness.errors import HarnessError, Interrupted
from harness.files import read_whole
from harness.protocol.messages import Outcome, Report
from harness.run.interrupts import end_signals
from harness.run.launchers.agents.handshake import JoinError, NotHeard, ask
from harness.run.launchers.agents.identity import equipment_of, own_identity
from harness.run.launchers.agents.messages import News, Order
from harness.run.launchers.agents.ports import close_all, reserve_ports
from harness.run.launchers.agents.wire import CLOSED, HANDSHAKE_S, Wire, WireError
from harness.run.process.engines import environments, python_for
from harness.run.process.startup import TOKEN_VARIABLE, Startup
from harness.run.process.zygote import ForkedChild, Zygote, ZygoteError
from harness.spec.address import joined
from harness.spec.engines import interpreters_in
from harness.spec.sweep import sweep_from
from harness.trial.engines import DEFAULT

RETRY_S = 0.5
EVERYWHERE = "0.0.0.0"
_LARGEST_TOKEN = 4096
"""Bytes."""


class CannotConnect(HarnessError):
    """No run listens where the agent was told to connect."""


@dataclass(frozen=True)
class WorkerSettings:
    """What an agent is told on its command line."""

    host: str
    port: int
    token: str
    address: str = ""
    """What other hosts reach this one at; empty is where the connection comes from."""
    data_dir: Path | None = None
    """Where prepared data are on this host; None is the folder that the sweep names."""
    wait_s: float = 60.0
    """How long it tries to connect."""
    stay: bool = False
    """Whether it waits for the next run when one is over."""
    engine_python: str = ""
    """Interpreters of engines on this host, as `--engine-python` of a sweep; others are where they were installed."""


class EndRequest:
    """Whether somebody asked this process to end (`end_signals`); `read` becomes readable then."""

    def __init__(self) -> None:
        self.read, self._write = socket.socketpair()
        self.to_end = False
        for number in end_signals():
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.to_end = True
        with contextlib.suppress(OSError):
            self._write.send(b".")


def work(settings: WorkerSettings, say: Callable[[str], None]) -> None:
    """Serve one run, or with `stay` one after the other until asked to end.

    Raises JoinError when it is refused, CannotConnect when nothing listens, ZygoteError when TensorFlow cannot be
    imported or the process that has imported it is gone; the run is told that, too.
    """
    asked = EndRequest()
    while not asked.to_end:
        wire = _connected(settings, asked, say)
        if wire is None:
            return
        try:
            _serve(wire, settings, asked, say)
        finally:
            wire.close()
        if not settings.stay:
            return


def _serve(wire: Wire, settings: WorkerSettings, asked: EndRequest, say: Callable[[str], None]) -> None:
    there = joined(settings.host, settings.port)
    say(f"joined the run at {there}; importing TensorFlow")
    with contextlib.ExitStack() as opened:
        try:
            session = WorkerSession(wire, settings, asked)
            opened.callback(session.close)
            if session.start():
                say("ready; it ends with the run")
                session.serve()
        except ZygoteError as error:
            with contextlib.suppress(WireError):  # the run may be over as well
                wire.send(News(of="failed", text=str(error)))
            raise
        except WireError as error:
            say(f"the run at {there} is over" + ("" if str(error) == CLOSED else f": {error}"))
        except Interrupted:
            pass  # while another engine was imported


def _connected(settings: WorkerSettings, asked: EndRequest, say: Callable[[str], None]) -> Wire | None:
    """A connection that the run has admitted; None when asked to end.

    With `stay` it is waited for as long as it takes, each reason said once.
    """
    identity = own_identity(settings.address)
    there = joined(settings.host, settings.port)
    deadline = time.monotonic() + settings.wait_s
    said = ""
    while not asked.to_end:
        try:
            wire = Wire(socket.create_connection((settings.host, settings.port), timeout=HANDSHAKE_S))
            try:
                ask(wire, settings.token, identity)
            except BaseException:
                wire.close()
                raise
            return wire
        except (OSError, NotHeard) as error:
            reason = getattr(error, "strerror", None) or str(error)
            if not settings.stay and time.monotonic() >= deadline:
                raise CannotConnect(
                    f"connect: no sweep answers at {there} ({reason}); waited {settings.wait_s:g} s"
                ) from None
            if settings.stay and reason != said:
                say(f"no sweep answers at {there} ({reason}); tries on")
                said = reason
        except JoinError as error:
            raise type(error)(f"{there}: {error}") from None
        select.select([asked.read], [], [], RETRY_S)
    return None


class WorkerSession:
    """One run, from the agent's side."""

    def __init__(self, wire: Wire, settings: WorkerSettings, asked: EndRequest) -> None:
        self._wire = wire
        self._zygotes = {DEFAULT: Zygote()}
        """By engine; another one's is started once the run asks for it."""
        self._settings = settings
        self._asked = asked
        self._processes: dict[int, ForkedChild] = {}
        self._open: set[int] = set()
        """Those whose channel is open."""
        self._reported: set[int] = set()
        """Those whose end the parent knows of."""
        self._ports: dict[int, socket.socket] = {}

    def start(self) -> bool:
        """Import TensorFlow; False when the run is over, or this process asked to end, before that is done."""
        zygote = self._zygotes[DEFAULT]
        zygote.launch()
        found = facts()  # while the import is under way
        while zygote.connection not in (ready := self._wait([zygote.connection])):
            if self._asked.to_end:
                return False
            if self._wire.connection in ready:
                self._wire.take_in()  # WireError when the parent is gone
        zygote.start()
        self._wire.send(News(of="ready", text=zygote.scratch, facts=found))
        return True

    def serve(self) -> None:
        """Do what the parent says until it is gone (WireError), or this process is asked to end."""
        while not self._asked.to_end:
            while (line := self._wire.next_line()) is not None:
                try:
                    self._obey(Order.model_validate_json(line))
                except ValidationError:
                    raise WireError("what it says is not in the protocol") from None
            channels = {self._processes[number].channel.connection: number for number in self._open}
            ready = self._wait([*channels, *(zygote.connection for zygote in self._zygotes.values())])
            for connection, number in channels.items():
                if connection in ready:
                    self._pass_on(number)
            self._tell_ends()
            if self._wire.connection in ready:
                self._wire.take_in()

    def close(self) -> None:
        """Give back the ports; a zygote's end ends what was forked from it."""
        close_all(list(self._ports.values()))
        for zygote in self._zygotes.values():
            zygote.close()

    def _check(self) -> None:
        """Interrupted where this process is asked to end, WireError where the parent is gone."""
        if self._asked.to_end:
            raise Interrupted("interrupted")
        if select.select([self._wire.connection], [], [], 0)[0]:
            self._wire.take_in()

    def _wait(self, others: list[socket.socket]) -> list[socket.socket]:
        return select.select([self._wire.connection, self._asked.read, *others], [], [])[0]

    def _obey(self, order: Order) -> None:
        process = self._processes.get(order.number)
        match order.do:
            case "spawn" if order.request is not None:
                self._spawn(order)
            case "tell" if process is not None and order.number in self._open:
                with contextlib.suppress(OSError):  # its end of the channel is closed, which is told by itself
                    process.channel.send_json(order.text)
            case "signal" if process is not None:
                process.signal(order.signal)
            case "hang_up" if process is not None and order.number in self._open:
                self._open.discard(order.number)
                process.channel.close()
            case "release" if process is not None:
                self._forget(order.number)
            case "tail":
                tail = process.stderr_tail(order.count) if process is not None else ""
                self._wire.send(News(of="tail", number=order.number, text=tail))
            case "hold":
                self._hold(order)
            case "import":
                self._import(order.text)
            case "free":
                if (port := self._ports.pop(order.base, None)) is not None:
                    port.close()
            case _:
                pass  # about a process that is gone

    def _import(self, engine: str) -> None:
        """Start an engine's zygote in the interpreter that this host has for it, and say what that has, or why not.

        No order is obeyed meanwhile: the run asks before anything is timed, and waits.
        """
        try:
            given = self._settings.engine_python
            sweep = sweep_from({"engine": [engine], "engine_python": given})
            # the run may have engines of users' own besides, whose names nobody here knows
            named = (name for name, _ in interpreters_in(given))
            another = python_for(sweep, {*environments(), *named}, engine)
            python, path = another or sys.executable, None if another is None else [Path.cwd()]
            found = equipment_of(engine, python)
            if engine not in self._zygotes:
                zygote = self._zygotes[engine] = Zygote(Startup(python=python, path=path, engine=engine))
                zygote.check = self._check
                zygote.start()
        except Interrupted:
            raise
        except HarnessError as error:
            if (failed := self._zygotes.pop(engine, None)) is not None:
                failed.close()
            self._wire.send(News(of="imported", text=f"{engine} {error}"))
        else:
            self._wire.send(News(of="imported", text=engine, equipment=found))

    def _spawn(self, order: Order) -> None:
        assert order.request is not None
        self._expect_zygotes()
        request = order.request
        if self._settings.data_dir is not None:
            request = request.model_copy(update={"data_dir": str(self._settings.data_dir)})
        try:
            process = self._zygotes[request.engine].spawn(request)
        except ZygoteError as error:
            report = Report(outcome=Outcome(status="crashed", reason=str(error)))
            self._wire.send(News(of="line", number=order.number, text=report.model_dump_json(exclude_none=True)))
            self._wire.send(News(of="closed", number=order.number))
            self._wire.send(News(of="exited", number=order.number, status=1))
            return
        self._processes[order.number] = process
        self._open.add(order.number)

    def _pass_on(self, number: int) -> None:
        """Every line of a process that has arrived, and whether it has closed its channel."""
        channel = self._processes[number].channel
        try:
            while (line := channel.receive_line(0.0)) is not None:
                self._wire.send(News(of="line", number=number, text=line))
        except EOFError:
            self._open.discard(number)
            self._wire.send(News(of="closed", number=number))

    def _tell_ends(self) -> None:
        for zygote in self._zygotes.values():
            zygote.drain()
        for number, process in self._processes.items():
            if number in self._reported:
                continue
            if process.status is not None:
                if number in self._open:
                    self._pass_on(number)
                self._reported.add(number)
                news = News(of="exited", number=number, status=process.status, out_of_memory=process.out_of_memory)
                self._wire.send(news)
        self._expect_zygotes()

    def _expect_zygotes(self) -> None:
        """ZygoteError when one is gone, and with it its processes: another one would not know how they ended."""
        if not all(zygote.alive for zygote in self._zygotes.values()):
            raise ZygoteError("the preloaded process on this host is gone")

    def _hold(self, order: Order) -> None:
        try:
            sockets = reserve_ports(EVERYWHERE, order.count, order.base)
        except OSError:
            sockets = []
        ports = {int(taken.getsockname()[1]): taken for taken in sockets}
        self._ports |= ports
        self._wire.send(News(of="held", number=order.number, ports=list(ports)))

    def _forget(self, number: int) -> None:
        process = self._processes.pop(number)
        if process.status is None:
            process.kill()
        self._open.discard(number)
        self._reported.discard(number)
        process.release()


def token_from(given: str | None, file: Path | None) -> str | None:
    """The token of `--token`, `--token-file` or HARNESS_TOKEN; None when there is none. OSError for the file's sake."""
    # taken out in any case: what a user's own model starts has no use for it
    variable = os.environ.pop(TOKEN_VARIABLE, "").strip() or None
    if given is not None:
        return given.strip()
    return read_whole(file, _LARGEST_TOKEN).decode().strip() if file is not None else variable
