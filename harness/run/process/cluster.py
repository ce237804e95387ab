"""A trial of several processes as its parent handles it: one child, whose processes are children of their own."""

import contextlib
import select
import signal
import socket
import time

from harness.protocol.hosting import EXIT_LIMIT_S, STDERR_CHARACTERS, Child
from harness.protocol.messages import Report, Request, Turn
from harness.record.cluster import ClusterRecord
from harness.run.launchers import CannotPlace, launchers
from harness.run.launchers.base import Links
from harness.run.process.cluster_report import Merged, Process
from harness.run.process.refusal import RefusedChild
from harness.run.process.waiting import awaited_words
from harness.run.process.zygote import Zygote

GRACE_S = 1.0
"""How long the others may report, too, once one process has failed: the first to speak is not always the cause."""
LEAST_CHARACTERS = 1500
"""Characters of each process's standard error that are kept as evidence."""


class ClusterChannel:
    """The processes' channels as one; see `harness.protocol.hosting.ChildChannel`."""

    def __init__(self, merged: Merged) -> None:
        self.merged = merged
        self.lost: Process | None = None
        """The process that went without a word."""
        self._failed_at: float | None = None

    @property
    def connections(self) -> list[socket.socket]:
        """Sockets on which something may arrive."""
        return [c for process in self._speaking() for c in process.child.channel.connections]

    @property
    def holds_line(self) -> bool:
        """Whether a report has arrived already, or is due."""
        due = self._failed_at is not None and time.monotonic() >= self._failed_at + GRACE_S
        said = due or self.lost is not None or bool(self.merged.out)
        return said or any(p.child.channel.holds_line for p in self._speaking())

    def send(self, turn: Turn) -> None:
        """Pass the turn to every worker at once; OSError when one is gone."""
        self.merged.asked = turn.do
        for worker in self.merged.workers:
            worker.tell(turn)

    def receive_line(self, timeout_s: float | None = None) -> str | None:
        """The trial's next report; None after `timeout_s`; EOFError when a process went without one of its own."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.merged.out:
            if self.lost is not None:
                raise EOFError(f"{self.lost.member.name} is gone")
            now = time.monotonic()
            if self._failed_at is not None and now >= self._failed_at + GRACE_S:
                self.merged.give_up()
                break
            # Before it is given up: a limit may be over, as after Ctrl-Z and fg, while what it is for has arrived.
            heard = self._take_in(self._wait_s(now, deadline))
            if not heard and deadline is not None and time.monotonic() >= deadline:
                return None
        return self.merged.out.pop(0).model_dump_json(exclude_none=True)

    def _wait_s(self, now: float, deadline: float | None) -> float | None:
        ends = [end for end in (deadline, self._failed_at and self._failed_at + GRACE_S) if end is not None]
        return max(0.0, min(ends) - now) if ends else None

    def _speaking(self) -> list[Process]:
        return [process for process in self.merged.processes if not process.hung_up]

    def _take_in(self, timeout_s: float | None) -> bool:
        """A report of each process that has one, or hangs up; whether there was any."""
        speaking = self._speaking()
        ready = [process for process in speaking if process.child.channel.holds_line]
        if not ready:
            sockets = {connection: process for process in speaking for connection in process.child.channel.connections}
            readable, _, _ = select.select(list(sockets), [], [], timeout_s)
            ready = [sockets[connection] for connection in readable]
        for process in ready:
            try:
                line = process.child.channel.receive_line(0.0)
            except EOFError:
                self._hung_up(process)
                continue
            if line is not None:
                self._heard(process, Report.model_validate_json(line))
        return bool(ready)

    def _heard(self, process: Process, report: Report) -> None:
        try:
            self.merged.take_in(process, report)
        except OSError:
            return  # one that was to be asked is gone; its own channel tells
        if self.merged.failed and self._failed_at is None:
            self._failed_at = time.monotonic()

    def _hung_up(self, process: Process) -> None:
        process.hung_up = True
        said = [p.outcome for p in self.merged.processes if p.outcome is not None]
        explained = any(not (outcome.well or outcome.status == "crashed") for outcome in said)
        if process.outcome is None and not explained:
            # No process leaves before it is told to: this one is the cause of what the others may have reported.
            self.lost = process
            self.merged.end_in_phase_of(process)


class ClusterChild:
    """The processes of a trial as one; see `harness.protocol.hosting.Child`."""

    host: str | None = None
    status: int | None = None

    def __init__(self, merged: Merged) -> None:
        self.merged = merged
        self.channel = ClusterChannel(merged)

    @property
    def who(self) -> str:
        """Which process ended the trial, for its reason."""
        return "" if self.channel.lost is None else f"{self.channel.lost.member.name} "

    @property
    def out_of_memory(self) -> bool:
        """Whether that one was ended as memory ran out on its host."""
        return self.channel.lost is not None and self.channel.lost.child.out_of_memory

    @property
    def pids(self) -> list[int]:
        """Of every process of this machine's."""
        return [pid for process in self.merged.processes for pid in process.child.pids]

    @property
    def lost(self) -> bool:
        """Whether nobody knows how some process ended, as its preloaded parent is gone."""
        return any(process.child.lost for process in self.merged.processes)

    @property
    def gone(self) -> str:
        """Why nobody knows how a process ended."""
        lost = self.channel.lost
        if lost is None:
            lost = next((p for p in self.merged.processes if p.child.lost), self.merged.processes[0])
        return f"{lost.member.name}: {lost.child.gone}"

    @property
    def links(self) -> Links | None:
        """The processes' cables, to pull and plug in while the trial runs; None unless the network is emulated."""
        return self.merged.placement.links

    def stderr_tail(self, characters: int = STDERR_CHARACTERS) -> str:
        """The end of what each process wrote, and its phase; `characters` are shared out, but each has the least."""
        each = max(LEAST_CHARACTERS, characters // len(self.merged.processes))
        trouble = self.merged.placement.trouble()
        parts = [] if trouble is None else [trouble]
        for process in self.merged.processes:
            if tail := process.child.stderr_tail(each).strip():
                parts.append(f"{process.member.name}, in {process.phase}:\n{tail}")
        return "\n\n".join(parts)

    def awaited(self) -> str:
        """Those of whom something is still to come."""
        return awaited_words(self.merged)

    def cluster(self) -> ClusterRecord:
        """The processes as they are now."""
        return self.merged.record()

    def signal(self, number: int) -> None:
        """Send a signal to every process that still lives."""
        for process in self.merged.processes:
            process.child.signal(number)

    def kill(self) -> None:
        """End every process at once and wait until all are gone."""
        self.signal(signal.SIGKILL)
        for process in self.merged.processes:
            process.child.wait()

    def wait(self, limit_s: float = EXIT_LIMIT_S) -> int | None:
        """See the processes out: the status of the one that was lost, else 0; None where one does not end."""
        lost = self.channel.lost
        if lost is not None:
            self.status = lost.child.wait(limit_s)
            self.kill()
            return self.status
        if self.merged.failed:
            self.kill()
            return 0
        for process in self.merged.processes:
            with contextlib.suppress(OSError):
                process.tell(Turn(do="leave"))
        deadline = time.monotonic() + limit_s
        statuses = [process.child.wait(deadline - time.monotonic()) for process in self.merged.processes]
        return None if None in statuses else 0

    def release(self) -> None:
        """Forget the processes and give back what the launcher took for them."""
        for process in self.merged.processes:
            process.child.release()
        self.merged.placement.release()


def spawn_cluster(request: Request, zygote: Zygote) -> Child:
    """Start every process of `request` where its launcher places it."""
    try:
        placement = launchers()[request.launcher].place(request, zygote)
    except CannotPlace as error:
        return RefusedChild(error)
    processes = [
        Process(seat, seat.fork_server.spawn(request.model_copy(update={"member": seat.member})))
        for seat in placement.seats
    ]
    return ClusterChild(Merged(processes, placement, request.launcher))
