"""TensorFlow imported once for a process of tests: the zygotes that it starts are forks of one that has it.

A zygote from here is as any other, a child of who started it, in the environment and folder that it was given; it only
has imported what the others import. Real starts stay for what is another interpreter, has another path for modules,
or differs in a variable that TensorFlow reads while it is imported.
"""

import atexit
import contextlib
import ctypes
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.protocol.engine import Engine
from harness.run.process import zygote as starting
from harness.run.process.startup import HASH_SEED
from harness.trial.engines import DEFAULT

ROOT = Path(__file__).parents[1]
MODULE = "harness.trial.zygote"
Loaded = tuple[Engine, dict[str, str]]
READ_BY_IMPORTS = ("TF_", "KERAS_", "XLA_", "CUDA_", "OMP_", "MKL_", "PYTHON")
"""Variables that begin so may make an import another one."""
PR_SET_CHILD_SUBREAPER = 36


class Forked:
    """A child of this process that another has forked for it: what is asked of a Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = time.monotonic() + timeout if timeout is not None else None
        while self.poll() is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(MODULE, timeout or 0)
            time.sleep(0.002)
        return self.returncode or 0

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Preloaded:
    """A process that has imported what zygotes import, and forks them."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.variables = _variables(os.environ)
        with theirs, tempfile.TemporaryFile() as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.preloaded", str(theirs.fileno()), str(os.getpid())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            theirs.close()
            self._socket = ours
            self._answers = ours.makefile("r")
            if not self._answers.readline():
                log.seek(0)
                raise RuntimeError(log.read().decode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._socket.close()

    def fork(self, command: list[str], env: Mapping[str, str], cwd: Path | None, control: int, log: int) -> Forked:
        """A zygote for `command`, whose parent is this process."""
        request = {"argv": command[2:], "env": dict(env), "cwd": str(cwd or Path.cwd())}
        _adopt_orphans(True)  # which the zygote becomes when what forked it ends, a moment after
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode() + b"\n"], [control, log])
            return Forked(json.loads(self._answers.readline()))
        finally:
            _adopt_orphans(False)


@functools.cache
def preloaded() -> Preloaded:
    """The one of this process, started when it is first needed."""
    process = Preloaded()
    atexit.register(process.close)
    return process


@contextlib.contextmanager
def handed_in() -> Iterator[None]:
    """While entered, zygotes that this process starts are forked instead of importing TensorFlow themselves."""
    real = starting.subprocess
    starting.subprocess = _Subprocess()  # type: ignore[assignment]
    try:
        yield
    finally:
        starting.subprocess = real


class _Subprocess:
    """The module `subprocess`, but for zygotes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, command: list[str], **given: Any) -> Any:  # noqa: N802
        plain = [sys.executable, "-m", MODULE]
        if command[:3] != plain or command[5:] != [DEFAULT] or _variables(given["env"]) != preloaded().variables:
            return subprocess.Popen(command, **given)
        return preloaded().fork(command, given["env"], given["cwd"], given["pass_fds"][0], given["stderr"].fileno())


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment imports may read; zygotes have a variable more that all of them are given.

    Not the hash seed, of which each zygote has another: it moves nothing but the order of sets. Nor this checkout on
    the path for modules: what forks them has it there in any case.
    """
    found = {name: value for name, value in environment.items() if name.startswith(READ_BY_IMPORTS)}
    found.pop(HASH_SEED, None)
    path = [entry for entry in found.pop("PYTHONPATH", "").split(os.pathsep) if entry and Path(entry) != ROOT]
    return {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": os.pathsep.join(path), **found}


def _adopt_orphans(wanted: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


# what runs in the process that has imported TensorFlow


def main() -> None:
    """Import, then fork a zygote for each request."""
    from harness.trial import zygote

    connection, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    zygote.die_with_parent(parent)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    engine, versions = zygote.preload(DEFAULT)
    connection.sendall(b'"ready"\n')
    while received := socket.recv_fds(connection, 1 << 20, 2):
        data, (control, log), _, _ = received
        while not data.endswith(b"\n"):
            data += connection.recv(1 << 20)
        pid = _fork_twice(connection, json.loads(data), (engine, versions), parent, (control, log))
        connection.sendall(json.dumps(pid).encode() + b"\n")
        os.close(control)
        os.close(log)


def _fork_twice(
    connection: socket.socket, request: dict[str, Any], loaded: Loaded, parent: int, fds: tuple[int, int]
) -> int:
    """The pid of a process that is an orphan, and so a child of whoever adopts those."""
    said, says = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid:
            os.write(says, str(pid).encode())
            os._exit(0)
        connection.close()
        os.close(said)
        os.close(says)
        _be_a_zygote(request, loaded, parent, *fds)
    os.close(says)
    pid = int(os.read(said, 64))
    os.close(said)
    os.waitpid(between, 0)
    return pid


def _be_a_zygote(request: dict[str, Any], loaded: Loaded, parent: int, control: int, log: int) -> None:
    """Never returns."""
    from harness.trial import zygote

    try:
        while os.getppid() != parent:
            time.sleep(0.001)
        os.setsid()
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        sys.path.insert(0, request["cwd"])
        tempfile.tempdir = None
        sys.argv = [MODULE, str(control), *request["argv"][2:]]
        zygote.preload = lambda _: loaded
        zygote.main()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
