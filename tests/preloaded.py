"""A framework imported once for a process of tests: the zygotes that it starts are forks of one that has it.

So are the processes by which `prepare` writes. One from here is as any other, a child of who started it, in the
environment and folder that it was given; it only has imported what the others import. Real starts stay for what is
another interpreter than the engine's own, has another path for modules, or differs in a variable that a framework reads
while it is imported.
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
from typing import Any, BinaryIO
from unittest import mock

import psutil

from harness.run.preparing import processes as writers
from harness.run.process import zygote as starting
from harness.run.process.interpreters import inherited
from harness.run.process.startup import HASH_SEED, PACKAGE
from harness.trial.engines import DEFAULT, engine_of
from tests.preloading import WRITING, ZYGOTE

ROOT = Path(__file__).parents[1]
OF_FRAMEWORKS = ("TF_", "KERAS_", "JAX_", "TORCH_", "HOROVOD_")
READ_BY_IMPORTS = (*OF_FRAMEWORKS, "XLA_", "CUDA_", "NVIDIA_", "OMP_", "MKL_", "MALLOC_", "PYTHON")
"""Variables that begin so may make an import another one, or what is computed."""
FORKED = ("horovod", "jax", "keras_distribution", "torch")
"""Engines beside TensorFlow whose zygotes are known to work as forks."""
ON_JAX, COMPILED = ("jax", "keras_distribution"), "compiled"
"""Engines on JAX, and where in a run's folder for what trials share they keep what they compile."""
FOUND_AGAIN = {"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none"}
"""Else what JAX has compiled is found only from a folder of the same name: it also keeps what XLA tries out on GPUs
there, and counts that path to what it has compiled with."""
TEMPORARY = tempfile.gettempdir()
"""Whatever a test makes of it later."""
PR_SET_CHILD_SUBREAPER = 36
ROOMY = 6 * 2**30
"""Free bytes of memory beside which another preloaded process takes nothing from a test."""


class Forked:
    """A child of this process that another has forked for it: what is asked of a Popen."""

    stdin: BinaryIO | None = None

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
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.002)
        return self.returncode or 0

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Preloaded:
    """A process of an interpreter that has imported what zygotes with an engine import, and forks them."""

    def __init__(self, python: str, engine: str) -> None:
        self._compiled = _folder(COMPILED) if engine in ON_JAX else None
        ours, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as log:
            self.process = subprocess.Popen(
                [python, "-m", "tests.preloading", str(theirs.fileno()), str(os.getpid()), engine],
                cwd=ROOT,
                env={**inherited(python), "TF_CPP_MIN_LOG_LEVEL": "2", **FOUND_AGAIN},
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

    def fork(self, command: list[str], env: Mapping[str, str], cwd: Path | None, given: int, log: int) -> Forked:
        """What `command` would start, whose parent is this process; `given` is a zygote's control socket, or a writer's
        standard input."""
        folder = str(cwd or Path.cwd())
        path = [*([] if "-P" in command else [folder]), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
        argv = command[command.index("-m") + 1 :]
        request = {"argv": argv, "env": dict(env), "cwd": folder, "path": path, "references": _folder("references")}
        compiled = Path(env.get("TMPDIR", "."), "..", COMPILED).resolve()
        if self._compiled and compiled.parent.name.startswith("harness-") and not compiled.exists():
            compiled.symlink_to(self._compiled)
        _adopt_orphans(True)  # which it becomes when what forked it ends, a moment after
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode() + b"\n"], [given, log])
            return Forked(json.loads(self._answers.readline()))
        finally:
            _adopt_orphans(False)


@functools.cache
def _folder(_: str) -> str:
    """The folder of what trials have compiled, or were held against: those of the next run find it, as trials of one
    run do."""
    folder = tempfile.TemporaryDirectory(dir=TEMPORARY)
    atexit.register(folder.cleanup)
    return folder.name


_started: dict[tuple[str, str], Preloaded] = {}


def preloaded(python: str = sys.executable, engine: str = DEFAULT) -> Preloaded:
    """The one of this process, started when it is first needed. Where memory is short one engine beside TensorFlow is
    kept at a time: each takes hundreds of megabytes, and the next test often wants the same."""
    key = (python, engine)
    if key not in _started:
        if psutil.virtual_memory().available < ROOMY:
            for other in [kept for kept in _started if DEFAULT not in (engine, kept[1])]:
                _started.pop(other).close()
        _started[key] = Preloaded(*key)
        atexit.register(_started[key].close)
    return _started[key]


def kept() -> set[int]:
    """Process ids of what forks zygotes and stays."""
    return {one.process.pid for one in _started.values()}


@contextlib.contextmanager
def handed_in(others: bool = False) -> Iterator[None]:
    """While entered, zygotes that this process starts are forked instead of importing TensorFlow themselves; with
    `others` also those of the engines beside it, in the interpreters that they have for themselves."""
    forking = _Subprocess(others)
    with mock.patch.object(starting, "subprocess", forking), mock.patch.object(writers, "subprocess", forking):
        yield


class _Subprocess:
    """The module `subprocess`, but for zygotes and writers."""

    def __init__(self, others: bool) -> None:
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, command: list[str], **given: Any) -> Any:  # noqa: N802
        python, cwd = command[0], given.get("cwd")
        engine = _framework(command, self._others)
        if engine is None or _variables(given["env"], cwd) != _variables(inherited(python), cwd):
            return subprocess.Popen(command, **given)
        of = preloaded(python, engine)
        if given["stdin"] != subprocess.PIPE:
            return of.fork(command, given["env"], cwd, given["pass_fds"][0], given["stderr"].fileno())
        orders, orders_to = os.pipe()
        forked = of.fork(command, given["env"], cwd, orders, given["stderr"])
        os.close(orders)
        forked.stdin = os.fdopen(orders_to, "wb")
        return forked


def _framework(command: list[str], others: bool) -> str | None:
    """The engine of the house whose framework a command's zygote imports; None where it is to start by itself."""
    python, *flags = command[: command.index("-m")]
    module, *arguments = command[command.index("-m") + 1 :]
    if module == WRITING:
        return DEFAULT
    if module != ZYGOTE or len(arguments) != 3:
        return None
    name = arguments[2] if arguments[2] == DEFAULT else engine_of(arguments[2]).name
    if python == sys.executable:
        return DEFAULT if name == DEFAULT and not flags else None
    return name if others and name in FORKED else None


def _variables(environment: Mapping[str, str], cwd: Path | None) -> dict[str, str]:
    """What of an environment imports may read; zygotes have a variable more that all of them are given.

    Not the hash seed, of which each zygote has another: it moves nothing but the order of sets. Not the cards that are
    to be seen, which are looked for when a framework starts. Nor on the path for modules this checkout, a folder with
    nothing but its package, or the working folder: what forks them has the package in any case, and they are given
    their own path.
    """
    found = {name: value for name, value in environment.items() if name.startswith(READ_BY_IMPORTS)}
    for name in (HASH_SEED, "CUDA_VISIBLE_DEVICES"):
        found.pop(name, None)
    ours = {ROOT, cwd or Path.cwd()}
    entries = [Path(entry) for entry in found.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    path = [str(entry) for entry in entries if entry not in ours and (entry / "harness").resolve() != PACKAGE]
    return {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": os.pathsep.join(path), **found}


def _adopt_orphans(wanted: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
