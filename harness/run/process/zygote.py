"""The parent's end of a zygote: spawn a trial, signal it, learn how it ended."""

import contextlib
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from pydantic_core import PydanticSerializationError

from harness.environment import Facts
from harness.errors import HarnessError
from harness.files import new_log, read_end
from harness.protocol.channel import Channel
from harness.protocol.control import EVENTS, Birth, ChildEvent, Death, Dismissal, Readiness, Signal, Spawn
from harness.protocol.hosting import EXIT_LIMIT_S, STDERR_CHARACTERS, OneProcess
from harness.protocol.messages import Request
from harness.record.trial import ZygoteRecord
from harness.run.process.leavings import Leavings
from harness.run.process.memory import OutOfMemoryCounter
from harness.run.process.scratch import Scratch
from harness.run.process.stacks import excerpt
from harness.run.process.startup import Starts, Startup
from harness.trial.engines import engine_of

START_LIMIT_S = 180.0
"""Importing a framework takes 4–10 s; on a cold network disk it can take minutes."""
SLICE_S = 0.2
"""How often who waits for long looks whether the person asked to stop."""
IMPORTS_S = 0.5
"""What a process that still imports gets to end: it has no trials that it could leave behind."""
PLAIN = Startup()
"""This interpreter, which preloads TensorFlow, as this process is."""
LOG = "zygote.log"
RENEWED_AFTER = 20
"""Times what its start took: to start another one then costs less than 5 % of the time."""


class ZygoteError(HarnessError):
    """The preloaded parent process could not start or is gone."""


class ForkedChild(OneProcess):
    """A process that a zygote has forked; see `harness.protocol.hosting.Child`."""

    host: str | None = None
    gone = "the preloaded parent process ended"

    def __init__(self, zygote: "Zygote", number: int, channel: Channel, stderr: Path) -> None:
        self.number = number
        self.channel = channel
        self.pid: int | None = None
        self.status: int | None = None
        self.out_of_memory = False
        self._ooms = OutOfMemoryCounter()
        self._zygote = zygote
        self._stderr = stderr

    @property
    def pids(self) -> tuple[int, ...]:
        """Its own, once the fork server has told it."""
        if self.pid is None:
            self._zygote.drain()
        return () if self.pid is None else (self.pid,)

    @property
    def lost(self) -> bool:
        """Whether the fork server is gone, or another one, so that nobody knows how this ended."""
        return not self._zygote.knows(self)

    def stderr_tail(self, characters: int = STDERR_CHARACTERS) -> str:
        """The end of what the trial wrote to standard error and output; of stacks, where each one is."""
        try:
            return excerpt(read_end(self._stderr), characters)
        except OSError:
            return ""

    def hear(self, event: ChildEvent) -> None:
        """What the zygote says of it."""
        match event:
            case Birth(pid=pid):
                self.pid = pid
            case Death(status=status):
                self.out_of_memory = status == -signal.SIGKILL and self._ooms.grew()
                self.status = status

    def signal(self, number: int) -> None:
        """Send a signal; the zygote knows whether it still lives, so no other pid is ever hit."""
        if self.status is None:
            self._zygote.send_signal(self, number)

    def kill(self) -> None:
        """End it at once and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, limit_s: float = EXIT_LIMIT_S) -> int | None:
        """Its exit status, once it is ending; None after `limit_s`."""
        deadline = time.monotonic() + limit_s
        while self.status is None and self._zygote.has(self):
            left = deadline - time.monotonic()
            if left <= 0 or not self._zygote.take_in(left):
                break
        return self.status

    def release(self) -> None:
        """Forget it: close the channel and remove the scratch file."""
        self._zygote.forget(self)
        self.close()

    def close(self) -> None:
        """Close the channel and remove the scratch file."""
        self.channel.close()
        with contextlib.suppress(OSError):
            self._stderr.unlink()


class Zygote:
    """One preloaded fork server, for one environment and one interpreter.

    Use as a context manager. When this process dies, however it dies, the kernel ends the zygote and
    with it every trial.
    """

    machine = ""
    """Which machine its trials run on: this one."""
    host: str | None = None
    """What records call the host that its trials run on; None is this machine."""

    def __init__(self, startup: Startup = PLAIN) -> None:
        self._startup = startup
        self.hosts: dict[str, Facts] = {}
        """What launchers know of hosts elsewhere that have joined the run, by name."""
        self.check: Callable[[], None] = lambda: None
        """Raises Interrupted when the person asked to stop; who waits for long calls it."""
        self._children: dict[int, ForkedChild] = {}
        self._next = 0
        self._leavings = Leavings()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._hung_up = False
        self._starting = False
        self.closing = contextlib.ExitStack()
        """Closed when this is: agents on other hosts, a cluster's job, networks; what lives as long as its trials."""
        try:
            self._scratch = Scratch()
            self._starts = Starts(startup, self._scratch.path)
        except OSError as error:
            raise ZygoteError(f"TMPDIR: no folder for temporary files can be made: {error.strerror or error}") from None
        self.scratch = str(self._scratch.path)
        """A folder for what trials share, removed with the zygote."""
        self.versions: dict[str, str] = {}
        self.start_record: ZygoteRecord | None = None
        """Which process it is by now, and what each has for itself; None before the first."""
        self._launched = self._ready = 0.0

    @property
    def engine(self) -> str:
        """What is preloaded."""
        return self._startup.engine

    @property
    def python(self) -> str:
        """The interpreter."""
        return self._startup.python

    @property
    def plain(self) -> bool:
        """Whether what it forks is as this process is."""
        return self._startup.plain

    def __enter__(self) -> "Zygote":
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and what lives as long as its trials, and remove what is temporary."""
        self.stop()
        self.closing.close()
        self._scratch.close()

    def launch(self) -> None:
        """Start the process and do not wait. Two that are launched one after the other import side by side.

        ZygoteError where the interpreter cannot be started.
        """
        self._launched = time.monotonic()
        environment, self.start_record = self._starts.next_environment()
        ours, theirs = _sockets()
        with theirs, self._log(self._scratch.path / LOG) as stderr:
            try:
                self._process = subprocess.Popen(
                    self._starts.command(theirs.fileno()),
                    env=environment,
                    cwd=self._startup.folder,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise ZygoteError(f"{self._startup.python} cannot be started: {error.strerror or error}") from None
        self._channel = Channel(ours)
        self._hung_up = False
        self._starting = True

    def start(self) -> None:
        """Start (or restart) the process, unless `launch` has, and wait until the engine is preloaded.

        Raises ZygoteError when it cannot be, and what `check` does.
        """
        if not self._starting:
            self.launch()
        assert self._channel is not None
        self._starting = False
        deadline = time.monotonic() + START_LIMIT_S
        try:
            while (line := self._channel.receive_line(SLICE_S)) is None and time.monotonic() < deadline:
                self.check()
        except EOFError:
            line = None
        if line is None:
            self.stop()
            tail = read_end(self._scratch.path / LOG).strip().splitlines()
            raise ZygoteError(
                f"{engine_of(self.engine).title} could not be imported by {self._startup.python}: "
                f"{tail[-1] if tail else 'no answer'}"
            )
        self.versions = Readiness.model_validate_json(line).versions
        self._ready = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it has served for so long that another one in its place costs little."""
        return time.monotonic() - self._ready > RENEWED_AFTER * (self._ready - self._launched)

    @property
    def connection(self) -> socket.socket:
        """The socket on which the fork server says that it is ready, and how trials ended."""
        assert self._channel is not None
        return self._channel.connection

    @property
    def pid(self) -> int:
        """The fork server's own; 0 before it was launched."""
        return 0 if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the fork server still runs."""
        return self._process is not None and not self._hung_up and self._process.poll() is None

    def has(self, child: ForkedChild) -> bool:
        """Whether the child was forked since the process started, and is not released."""
        return child.number in self._children

    def knows(self, child: ForkedChild) -> bool:
        """Whether it can still be learnt how the child ended."""
        return self.has(child) and self.alive

    def stop(self) -> None:
        """End the zygote; trials that still live end with it."""
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.send(Dismissal())
            self._channel.close()
        if self._process is not None:
            serves = self._ready > self._launched
            try:
                self._process.wait(EXIT_LIMIT_S if serves else IMPORTS_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for child in self._children.values():
            child.close()
        self._children.clear()

    def spawn(self, request: Request) -> ForkedChild:
        """Fork a fresh process for `request`."""
        if not self.alive:
            self.stop()
            self.start()
        number, self._next = self._next, self._next + 1
        ours, theirs = _sockets()
        stderr = self._scratch.path / f"trial-{number}.log"
        child = ForkedChild(self, number, Channel(ours), stderr)
        request = request.model_copy(update={"scratch": self.scratch})
        with theirs, self._log(stderr) as log:
            self._send_fds(_line(Spawn(number=number, request=request)), [theirs.fileno(), log.fileno()])
        self._children[number] = child
        self._leavings.begun(request)
        return child

    def _log(self, path: Path) -> BinaryIO:
        try:
            return new_log(path)
        except OSError as error:
            raise ZygoteError(f"TMPDIR: cannot write '{path}': {error.strerror or error}") from None

    def _send_fds(self, data: bytes, fds: list[int]) -> None:
        assert self._channel is not None
        connection = self._channel.connection
        try:
            sent = socket.send_fds(connection, [data], fds)
            if sent < len(data):
                connection.sendall(data[sent:])
        except OSError as error:
            raise ZygoteError(f"the preloaded process is gone: {error}") from error

    def send_signal(self, child: ForkedChild, number: int) -> None:
        """Have the fork server send a signal to a child of its own."""
        if self._channel is not None and self.alive:
            with contextlib.suppress(OSError):
                self._channel.send(Signal(number=child.number, signal=number))

    def forget(self, child: ForkedChild) -> None:
        """What is heard of this child is of no more interest."""
        self._children.pop(child.number, None)

    def take_in(self, timeout_s: float) -> bool:
        """Take in one message of the zygote; False when none came or it is gone."""
        assert self._channel is not None
        try:
            line = self._channel.receive_line(timeout_s)
        except (EOFError, OSError, ValueError):
            self._hung_up = True
            return False
        if line is None:
            return False
        event = EVENTS.validate_json(line)
        if (child := self._children.get(event.number)) is not None:
            child.hear(event)
        if isinstance(event, Death):
            self._leavings.tell(event, all(child.status is not None for child in self._children.values()))
        return True

    def drain(self) -> None:
        """Take in every message that has arrived, without waiting."""
        while self._channel is not None and self.alive:
            readable, _, _ = select.select([self._channel.connection], [], [], 0)
            if not (readable or self._channel.holds_line) or not self.take_in(0.0):
                return


def _sockets() -> tuple[socket.socket, socket.socket]:
    """Both ends of a way to a process."""
    try:
        return socket.socketpair()
    except OSError as error:
        reason = error.strerror or error
        raise ZygoteError(f"no socket for a process: {reason}; raise the limit on open files (ulimit -n)") from None


def _line(order: Spawn) -> bytes:
    try:
        return order.model_dump_json().encode() + b"\n"
    except PydanticSerializationError:
        where = "data_dir, TMPDIR or the folder of results"
        raise ZygoteError(f"a path that trials are told ({where}) has bytes that are no UTF-8") from None
