"""What a trial is forked from, and what it is to its parent: turns, time limits, ends and records know no more of it.

A fork server is a preloaded process, here (`harness.run.process.zygote`) or on another machine
(`harness.run.launchers.agents.remote`); a child is a process that was forked there, or the several processes of a
cluster (`harness.run.process.cluster`) as one.
"""

import socket
from collections.abc import Sequence
from typing import Protocol

from harness.protocol.messages import Request, Turn
from harness.record.cluster import ClusterRecord

EXIT_LIMIT_S = 10.0
"""How long a child that is ending, or was killed, may take to be gone."""
STDERR_CHARACTERS = 4000
"""Characters of standard error that are kept as evidence."""


class ChildChannel(Protocol):
    """The parent's end of what is said between it and a child (`harness.protocol.channel.Channel`)."""

    @property
    def connections(self) -> Sequence[socket.socket]:
        """Sockets on which something may arrive."""

    @property
    def holds_line(self) -> bool:
        """Whether a line has arrived already, or the end of the channel: what no select on the sockets would tell."""

    def send(self, turn: Turn) -> None:
        """Send it; OSError when the child is gone."""

    def receive_line(self, timeout_s: float | None = None) -> str | None:
        """The next line; None after `timeout_s` without one; EOFError when the child is gone."""


class Child(Protocol):
    """A trial's process, or its processes, from the spawn to the release."""

    @property
    def channel(self) -> ChildChannel:
        """The way to it."""

    @property
    def host(self) -> str | None:
        """What records call the host that it runs on; None is this machine, or several hosts."""

    @property
    def pids(self) -> Sequence[int]:
        """Numbers of its processes on this machine, as this process knows them; none of those elsewhere."""

    @property
    def status(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives and where nobody knows."""

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel of its host ended it, as memory ran out there."""

    @property
    def who(self) -> str:
        """Which of several processes ended the trial, followed by a space; empty where one says nothing more."""

    @property
    def lost(self) -> bool:
        """Whether nobody can know any more how it ended."""

    @property
    def gone(self) -> str:
        """Why that is."""

    def stderr_tail(self, characters: int = STDERR_CHARACTERS) -> str:
        """The end of what it wrote to standard error and output; of stacks, where each one is."""

    def awaited(self) -> str:
        """Which of several processes have not said what they were asked for, in words; empty where that is no news."""

    def cluster(self) -> ClusterRecord | None:
        """Its processes as they are now; None where it is one."""

    def signal(self, number: int) -> None:
        """Send a signal, if it still lives."""

    def kill(self) -> None:
        """End it at once and wait until it is gone."""

    def wait(self, limit_s: float = EXIT_LIMIT_S) -> int | None:
        """Its exit status, once it is ending; None after `limit_s`."""

    def release(self) -> None:
        """Forget it, and give back what was taken for it; call it once it has ended."""


class OneProcess:
    """Of a child that is one process what it says of several."""

    who = ""

    def awaited(self) -> str:
        """Nobody else is."""
        return ""

    def cluster(self) -> ClusterRecord | None:
        """It is one process."""
        return None


class ForkServer(Protocol):
    """A preloaded process that children are forked from."""

    @property
    def machine(self) -> str:
        """Which machine its children run on: the same for fork servers that share processors."""

    @property
    def host(self) -> str | None:
        """What records call the host that it runs on; None is this machine."""

    @property
    def scratch(self) -> str:
        """A folder there that its children share, and that goes with it."""

    @property
    def alive(self) -> bool:
        """Whether it can still fork."""

    def spawn(self, request: Request) -> Child:
        """Fork a fresh process for `request`, which is told this one's scratch folder."""
