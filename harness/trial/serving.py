"""The loop of a fork server: trials are forked, signalled and waited for as the parent says over the control socket.

What they say to each other is in `harness.protocol.control`.
"""

import contextlib
import os
import select
import signal
import socket
import sys
from pathlib import Path

from harness.files import cut_log
from harness.protocol.channel import Channel
from harness.protocol.control import DEMANDS, Birth, Death, Demand, Dismissal, Readiness, Signal, Spawn
from harness.protocol.engine import Engine
from harness.trial.life import live
from harness.trial.orphans import adopt, children, end_orphans
from harness.trial.parent import die_with_parent

OOM_SCORE = "800"
"""Trials are what the kernel should end first when memory runs out, not the parent that records it."""
LOOK_S = 0.5
"""How often it is looked whether a trial's log has become too long."""


class ServingLoop:
    """The loop of a zygote that has `preloaded` what `engine` needs, or leaves that to each trial."""

    def __init__(self, control: socket.socket, engine: Engine, preloaded: bool = True) -> None:
        self._control = control
        self._engine = engine
        self._preloaded = preloaded
        self._parent = Channel(control)
        self._buffer = b""
        self._fds: list[int] = []
        self._children: dict[int, int] = {}
        self._logs: dict[int, tuple[int, int]] = {}
        """By trial, since none was alive: the descriptor of what it prints to, as may what it has left running, and how
        many bytes of that are left out."""
        self._own: set[int] = set()
        """Child processes that are no trials and left by none, or may not be ended."""
        self.dismissed = False
        """Whether the parent has said that it needs no more trials; else its end is a sudden one."""
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)

    def serve(self, versions: dict[str, str]) -> None:
        """Tell the versions of what is preloaded, and fork trials until the parent closes the control socket."""
        self._parent.send(Readiness(versions=versions))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write)
        self._own = set(children())
        adopt()
        while True:
            control = self._control.fileno()
            readable, _, _ = select.select([control, self._wake_read], [], [], LOOK_S if self._children else None)
            if self._wake_read in readable:
                os.read(self._wake_read, 4096)
            self._cut_logs()
            self._reap()
            if control in readable and not self._receive():
                return

    def end_trials(self) -> None:
        """Kill every trial that lives, and wait until it is gone."""
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        end_orphans(self._own)

    def _receive(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, 1 << 20, 16)
        if not data:
            return False
        self._fds.extend(fds)
        self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            self._obey(DEMANDS.validate_json(line))
        return True

    def _obey(self, demand: Demand) -> None:
        match demand:
            case Spawn():
                channel, stderr = self._fds[:2]
                del self._fds[:2]
                self._spawn(demand, channel, stderr)
            case Signal():
                for pid, number in self._children.items():
                    if number == demand.number:
                        os.kill(pid, demand.signal)
            case Dismissal():
                self.dismissed = True

    def _spawn(self, demand: Spawn, channel: int, stderr: int) -> None:
        zygote_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell_unborn(demand, channel, stderr, error)
            return
        if pid == 0:
            self._be_a_trial(zygote_pid, demand, channel, stderr)
        os.close(channel)
        self._logs[demand.number] = stderr, 0
        self._children[pid] = demand.number
        self._parent.send(Birth(number=demand.number, pid=pid))

    def _tell_unborn(self, demand: Spawn, channel: int, stderr: int, error: OSError) -> None:
        """End a trial for which the kernel has no process, or no memory: others go on, and its log says why."""
        with contextlib.suppress(OSError):
            os.write(stderr, f"OSError: no process could be forked: {error.strerror or error}\n".encode())
        self._parent.send(Death(number=demand.number, status=1, left=[]))
        for fd in (channel, stderr):
            os.close(fd)

    def _be_a_trial(self, zygote_pid: int, demand: Spawn, channel: int, stderr: int) -> None:
        """Never returns: a trial leaves by os._exit, since a framework's own teardown takes seconds."""
        code = 1
        try:
            self._become_a_trial(zygote_pid, stderr)
            live(socket.socket(fileno=channel), demand.request, self._engine)
            code = 0
        finally:
            try:
                _flush(failed=bool(code))
            finally:  # whatever the user's own code has made of the streams, this is no second fork server
                os._exit(code)

    def _become_a_trial(self, zygote_pid: int, stderr: int) -> None:
        """Let go of what is the fork server's, and print to this trial's log."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with_parent(zygote_pid)
        for fd in (self._wake_read, self._wake_write, self._control.fileno()):
            os.close(fd)
        os.dup2(stderr, 1)
        os.dup2(stderr, 2)
        for log in {stderr, *(log for log, _ in self._logs.values())} - {1, 2}:
            os.close(log)
        _prefer_as_victim()
        if not self._preloaded:
            self._engine.preload()

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._own.discard(pid)
            number = self._children.pop(pid, None)
            if number is not None:
                # not while others live, to whom they may belong: who started an orphan is not known any more
                left, stays = ([], []) if self._children else end_orphans(self._own)
                self._cut_logs()
                _, left_out = self._logs[number]
                if not self._children:
                    self._close_logs()
                code = os.waitstatus_to_exitcode(status)
                self._parent.send(Death(number=number, status=code, left=left, stays=tuple(stays), left_out=left_out))

    def _cut_logs(self) -> None:
        self._logs = {number: (log, cut_log(log, left_out)) for number, (log, left_out) in self._logs.items()}

    def _close_logs(self) -> None:
        for log, _ in self._logs.values():
            os.close(log)
        self._logs.clear()


def _flush(failed: bool) -> None:
    """Write out what was printed, and why the trial failed: the user's own code may have closed or replaced a stream,
    and then what it still holds is lost, and nothing else."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if failed:
        import traceback

        with contextlib.suppress(Exception):
            os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))


def _prefer_as_victim() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
