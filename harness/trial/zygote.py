"""The zygote: an engine's framework imported once, then a fork a trial.

`python -m harness.trial.zygote FD PID ENGINE [ROOT]` runs it over a control socket. A fork of it is a fresh process
whose framework is imported and has not started, in hundredths of a second instead of an import's seconds.
It is not the standard library's forkserver because that is one a program with one environment and
one interpreter, speaks pickle, imports the caller's `__main__` into every child and does not say how
a child ended.

Control messages, a JSON line each. From the parent: `{"spawn": id, "request": {...}}` with two file
descriptors (the trial's channel and its standard error), `{"kill": id, "signal": n}`, `{"end": true}`. To the parent:
`{"ready": {...}}`, `{"spawned": id, "pid": p}`, `{"exited": id, "status": s}` with a
negative status for a signal.
"""

import contextlib
import gc
import json
import os
import re
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.trial.guardian import guard
from harness.trial.orphans import adopt, children, end_orphans
from harness.trial.parent import die_with_parent
from harness.trial.revision import keep_out

if TYPE_CHECKING:
    from harness.protocol.engine import Engine

OOM_SCORE = "800"
"""Trials are what the kernel should end first when memory runs out, not the parent that records it."""
PARENT_ENDS_S = 2.0
"""How long the parent that hung up without a word may take to be gone."""


class ServingLoop:
    """The loop of a zygote."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._buffer = b""
        self._fds: list[int] = []
        self._children: dict[int, int] = {}
        self._own: set[int] = set()
        """Child processes that are no trials and left by none."""
        self.dismissed = False
        """Whether the parent has said that it needs no more trials; else its end is a sudden one."""
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)

    def serve(self, engine: "Engine") -> None:
        """Fork trials of `engine`, which is preloaded, until the parent closes the control socket."""
        self._engine = engine
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write)
        self._own = set(children())
        adopt()
        while True:
            control = self._control.fileno()
            readable, _, _ = select.select([control, self._wake_read], [], [])
            if self._wake_read in readable:
                os.read(self._wake_read, 4096)
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
            self._obey(json.loads(line))
        return True

    def _obey(self, message: dict[str, Any]) -> None:
        if "spawn" in message:
            channel, stderr = self._fds[:2]
            del self._fds[:2]
            self._spawn(message["spawn"], message["request"], channel, stderr)
        elif "end" in message:
            self.dismissed = True
        elif "kill" in message:
            for pid, child in self._children.items():
                if child == message["kill"]:
                    os.kill(pid, message["signal"])

    def _spawn(self, child: int, request: dict[str, Any], channel: int, stderr: int) -> None:
        zygote_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be_a_trial(zygote_pid, request, channel, stderr)
        os.close(channel)
        os.close(stderr)
        self._children[pid] = child
        self._tell({"spawned": child, "pid": pid})

    def _be_a_trial(self, zygote_pid: int, request: dict[str, Any], channel: int, stderr: int) -> None:
        """Never returns: a trial leaves by os._exit, since a framework's own teardown takes seconds."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_parent(zygote_pid)
            for fd in (self._wake_read, self._wake_write, self._control.fileno()):
                os.close(fd)
            os.dup2(stderr, 1)
            os.dup2(stderr, 2)
            _prefer_as_victim()
            from harness.trial.life import live

            live(socket.socket(fileno=channel), json.dumps(request), self._engine)
            code = 0
        finally:
            if code:
                import traceback

                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                # not while others live, to whom they may belong: who started an orphan is not known any more
                left = [] if self._children else end_orphans(self._own)
                self._tell({"exited": child, "status": os.waitstatus_to_exitcode(status), "left": left})

    def _tell(self, message: dict[str, Any]) -> None:
        self._control.sendall(json.dumps(message).encode() + b"\n")


def _prefer_as_victim() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)


def preload(name: str) -> tuple["Engine", dict[str, str]]:
    """Import what every trial with the engine needs, without starting its framework; the engine, and its versions."""
    start = time.perf_counter()
    import harness.trial.life  # noqa: F401  what every fork will call
    from harness.protocol.engine import IMPORT_S
    from harness.trial.engines import engine_of

    engine = engine_of(name)
    engine.catalogue()
    versions = engine.preload()
    gc.collect()
    gc.freeze()  # Objects of the import are never garbage; collecting them in a fork would copy their pages.
    return engine, {
        **versions,
        "python": sys.version.split()[0],
        IMPORT_S: f"{time.perf_counter() - start:.3f}",
    }


def remove_scratch() -> None:
    """Remove the parent's folder for temporary files, of which TMPDIR is a part: it was killed, and cannot."""
    folder = Path(os.environ.get("TMPDIR", "")).parent
    if re.fullmatch(rf"harness-{sys.argv[2]}-\w+", folder.name):
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Run a zygote. Arguments: the control socket's file descriptor, the parent's pid, the engine's name, and, where a
    git revision is measured, the working tree that no module must come from."""
    control = socket.socket(fileno=int(sys.argv[1]))
    parent_pid = int(sys.argv[2])
    server = ServingLoop(control)

    def clean_up(*_: object) -> None:
        # A process that is killed closes its sockets first, and is gone a moment later.
        until = time.monotonic() + PARENT_ENDS_S
        while not server.dismissed and os.getppid() == parent_pid and time.monotonic() < until:
            time.sleep(0.01)
        server.end_trials()
        if os.getppid() != parent_pid:
            remove_scratch()
        os._exit(0)

    signal.signal(signal.SIGTERM, clean_up)
    die_with_parent(parent_pid, signal.SIGTERM)
    guard(parent_pid, remove_scratch)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for root in sys.argv[4:]:
        keep_out(root)
    engine, versions = preload(sys.argv[3])
    control.sendall(json.dumps({"ready": versions}).encode() + b"\n")
    server.serve(engine)
    clean_up()


if __name__ == "__main__":
    main()
