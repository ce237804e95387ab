"""A trial of several processes as its parent handles it: like one process, that is several.

`Cluster` and `ClusterSpawned` do what `Zygote` and `Spawned` do for a single process, so that turns, time limits,
ends and records are the same code for both.
"""

import contextlib
import select
import signal
import socket
import time
from typing import Any

from harness.engines.tensorflow.catalogue import load_catalogue
from harness.protocol.messages import Channel, Outcome, Report, Request, Turn
from harness.run.launchers import CannotPlace, NotNow, launchers
from harness.run.launchers.base import Links
from harness.run.process.cluster_report import Merged, Process
from harness.run.process.zygote import EXIT_LIMIT_S, Zygote
from harness.spec.cell import TrainingCell

GRACE_S = 1.0
"""How long the others may report, too, once one process has failed: the first to speak is not always the cause."""
TAIL = 1500
"""Characters of each process's standard error that are kept as evidence."""


class ClusterChannel:
    """The processes' channels as one; see `harness.protocol.messages.Channel`."""

    def __init__(self, merged: Merged) -> None:
        self.merged = merged
        self.lost: Process | None = None
        """The process that went without a word."""
        self._failed_at: float | None = None

    @property
    def connections(self) -> list[socket.socket]:
        """Sockets on which something may arrive."""
        return [process.spawned.channel.connection for process in self._speaking()]

    @property
    def holds_line(self) -> bool:
        """Whether a report has arrived already, or is due."""
        due = self._failed_at is not None and time.monotonic() >= self._failed_at + GRACE_S
        return due or bool(self.merged.out) or any(p.spawned.channel.holds_line for p in self._speaking())

    def send(self, turn: Turn) -> None:
        """Pass the turn to every worker at once; OSError when one is gone."""
        self.merged.asked = turn.do
        for worker in self.merged.workers:
            worker.tell(turn)

    def receive_line(self, timeout_s: float | None = None) -> str | None:
        """The trial's next report; None after `timeout_s`; EOFError when a process went without one of its own."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.merged.out:
            now = time.monotonic()
            if self._failed_at is not None and now >= self._failed_at + GRACE_S:
                self.merged.give_up()
                break
            if deadline is not None and now > deadline:
                return None
            self._take_in(self._wait_s(now, deadline))
        return self.merged.out.pop(0).model_dump_json(exclude_none=True)

    def _wait_s(self, now: float, deadline: float | None) -> float | None:
        ends = [end for end in (deadline, self._failed_at and self._failed_at + GRACE_S) if end is not None]
        return max(0.0, min(ends) - now) if ends else None

    def _speaking(self) -> list[Process]:
        return [process for process in self.merged.processes if not process.hung_up]

    def _take_in(self, timeout_s: float | None) -> None:
        speaking = self._speaking()
        ready = [process for process in speaking if process.spawned.channel.holds_line]
        if not ready:
            sockets = {process.spawned.channel.connection: process for process in speaking}
            readable, _, _ = select.select(list(sockets), [], [], timeout_s)
            ready = [sockets[connection] for connection in readable]
        for process in ready:
            try:
                line = process.spawned.channel.receive_line(0.0)
            except EOFError:
                self._hung_up(process)
                continue
            if line is not None:
                self._heard(process, Report.model_validate_json(line))

    def _heard(self, process: Process, report: Report) -> None:
        try:
            self.merged.take_in(process, report)
        except OSError:
            return  # one that was to be asked is gone; its own channel tells
        if self.merged.failed and self._failed_at is None:
            self._failed_at = time.monotonic()

    def _hung_up(self, process: Process) -> None:
        process.hung_up = True
        said = [p.outcome.status for p in self.merged.processes if p.outcome is not None]
        explained = any(status not in ("ok", "crashed") for status in said)
        if process.outcome is None and not explained:
            # No process leaves before it is told to: this one is the cause of what the others may have reported.
            self.lost = process
            raise EOFError(f"{process.member.name} is gone")

    def close(self) -> None:
        """Close every channel."""
        for process in self.merged.processes:
            process.spawned.channel.close()


class ClusterSpawned:
    """The processes of a trial as one; see `harness.run.process.zygote.Spawned`."""

    def __init__(self, merged: Merged) -> None:
        self.merged = merged
        self.channel = ClusterChannel(merged)

    @property
    def who(self) -> str:
        """Which process ended the trial, for its reason."""
        return "" if self.channel.lost is None else f"{self.channel.lost.member.name} "

    @property
    def gone(self) -> str:
        """Why nobody knows how a process ended."""
        lost = self.channel.lost
        if lost is None:
            lost = next((p for p in self.merged.processes if p.seat.zygote.lost(p.spawned)), self.merged.processes[0])
        return f"{lost.member.name}: {lost.spawned.gone}"

    @property
    def links(self) -> Links | None:
        """The processes' cables, to pull and plug in while the trial runs; None unless the network is emulated."""
        return self.merged.placement.links

    def stderr_tail(self, characters: int = 4000) -> str:
        """The end of what each process wrote, and its phase; `characters` are shared out, but each has TAIL."""
        each = max(TAIL, characters // len(self.merged.processes))
        trouble = self.merged.placement.trouble()
        parts = [] if trouble is None else [trouble]
        for process in self.merged.processes:
            if tail := process.spawned.stderr_tail(each).strip():
                parts.append(f"{process.member.name}, in {process.phase}:\n{tail}")
        return "\n\n".join(parts)


class Refused:
    """Stands for processes that could not be started: its one report says why."""

    def __init__(self, error: CannotPlace) -> None:
        self.who = self.gone = ""
        self.status = 0
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        with theirs:
            outcome = Outcome(status="unsupported", reason=str(error), may_pass=isinstance(error, NotNow))
            Channel(theirs).send(Report(outcome=outcome))

    def stderr_tail(self, characters: int = 4000) -> str:
        """Nothing was started, so nothing was written."""
        return ""


class Cluster:
    """Starts, signals and sees out the processes of a trial through its launcher, as a `Zygote` does those of one."""

    host = None
    """Each of its processes has its own."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self.scratch = zygote.scratch

    def spawn(self, request: Request) -> Any:
        """Start every process of `request`."""
        try:
            placement = launchers()[request.launcher].place(request, self._zygote)
        except CannotPlace as error:
            return Refused(error)
        processes = []
        for seat in placement.seats:
            own = request.model_copy(update={"member": seat.member, "scratch": seat.zygote.scratch})
            processes.append(Process(seat, seat.zygote.spawn(own)))
        return ClusterSpawned(Merged(processes, placement, request.launcher))

    def signal(self, spawned: Any, number: int) -> None:
        """Send a signal to every process that still lives."""
        for process in _processes(spawned):
            process.seat.zygote.signal(process.spawned, number)

    def kill(self, spawned: Any) -> None:
        """End every process at once and wait until all are gone."""
        self.signal(spawned, signal.SIGKILL)
        for process in _processes(spawned):
            process.seat.zygote.wait(process.spawned)

    def wait(self, spawned: Any, limit_s: float = EXIT_LIMIT_S) -> int | None:
        """See the processes out: the status of the one that was lost, else 0; None where one does not end."""
        if isinstance(spawned, Refused):
            return 0
        lost = spawned.channel.lost
        if lost is not None:
            status: int | None = lost.seat.zygote.wait(lost.spawned, limit_s)
            self.kill(spawned)
            return status
        if spawned.merged.failed:
            self.kill(spawned)
            return 0
        for process in spawned.merged.processes:
            with contextlib.suppress(OSError):
                process.tell(Turn(do="leave"))
        deadline = time.monotonic() + limit_s
        statuses = [p.seat.zygote.wait(p.spawned, deadline - time.monotonic()) for p in spawned.merged.processes]
        return None if None in statuses else 0

    def lost(self, spawned: Any) -> bool:
        """Whether nobody knows how some process ended, as its preloaded parent is gone."""
        return any(process.seat.zygote.lost(process.spawned) for process in _processes(spawned))

    def release(self, spawned: Any) -> None:
        """Forget the trial's processes and give back what the launcher took for them."""
        if isinstance(spawned, Refused):
            spawned.channel.close()
            return
        for process in spawned.merged.processes:
            process.seat.zygote.release(process.spawned)
        spawned.merged.placement.release()


class Elsewhere:
    """A trial of one process on another host; see `harness.run.process.zygote.Zygote`."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self._host: Any = None
        self.scratch = zygote.scratch

    @property
    def host(self) -> str | None:
        """The name of the host that it was started on."""
        return None if self._host is None else str(self._host.host)

    def spawn(self, request: Request) -> Any:
        """Start the process on the launcher's first host."""
        try:
            self._host = launchers()[request.launcher].host_for(request, self._zygote)
        except CannotPlace as error:
            return Refused(error)
        return self._host.spawn(request.model_copy(update={"scratch": self._host.scratch}))

    def signal(self, spawned: Any, number: int) -> None:
        """Send a signal, if it still lives."""
        if self._host is not None:
            self._host.signal(spawned, number)

    def kill(self, spawned: Any) -> None:
        """End it at once and wait until it is gone."""
        if self._host is not None:
            self._host.kill(spawned)

    def wait(self, spawned: Any, limit_s: float = EXIT_LIMIT_S) -> int | None:
        """Its exit status, or None after `limit_s`."""
        status: int | None = 0 if self._host is None else self._host.wait(spawned, limit_s)
        return status

    def lost(self, spawned: Any) -> bool:
        """Whether nobody knows how it ended."""
        return self._host is not None and bool(self._host.lost(spawned))

    def release(self, spawned: Any) -> None:
        """Forget it."""
        if self._host is None:
            spawned.channel.close()
        else:
            self._host.release(spawned)


def handler_of(request: Request, zygote: Zygote) -> "Zygote | Cluster | Elsewhere":
    """What starts and sees out the process, or processes, of `request`."""
    if several_processes(request):
        return Cluster(zygote)
    launcher = launchers().get(request.launcher)
    if request.task == "trial" and launcher is not None and launcher.elsewhere:
        return Elsewhere(zygote)
    return zygote


def several_processes(request: Request) -> bool:
    """Whether the trial that is asked for is a cluster."""
    if request.task != "trial":
        return False
    if not isinstance(request.cell, TrainingCell):
        return request.cell.shape.workers > 1
    traits = load_catalogue().strategies.get(request.cell.strategy)
    return traits is not None and traits.multi_worker


def _processes(spawned: Any) -> list[Process]:
    return [] if isinstance(spawned, Refused) else list(spawned.merged.processes)
