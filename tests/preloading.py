"""What runs in the process that has imported a framework, and forks zygotes and writers: see `tests.preloaded`.

It imports no more than they do: the interpreter of an engine has nothing else.
"""

import dataclasses
import functools
import json
import os
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from typing import Any

from harness.protocol.engine import Engine
from harness.protocol.state import Reference, VariableState
from harness.trial import zygote

ZYGOTE, WRITING = "harness.trial.zygote", "harness.trial.writing"
TURN_S = 0.02
"""How long a writer from here reads source or files in each turn: it is seen that they are read, and not how fast."""
SMALL = 8 * 2**20
"""Bytes of weights and optimizer state up to which a reference is kept for the tests that follow."""
ASKED_EACH_MS = 20
"""How often a reader of a tf.data service asks whether its pass is over, for which it otherwise waits a second."""
Loaded = tuple[Engine, dict[str, str]]


def main() -> None:
    """Import what an engine needs, then fork what each request asks for. Arguments: the socket's file descriptor, the
    parent's pid, and the engine's name."""
    connection, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    zygote.die_with_parent(parent)
    loaded = zygote.preload(sys.argv[3])
    connection.sendall(b'"ready"\n')
    while received := socket.recv_fds(connection, 1 << 20, 2):
        data, (given, log), _, _ = received
        while not data.endswith(b"\n"):
            data += connection.recv(1 << 20)
        pid = _fork_twice(connection, json.loads(data), loaded, parent, (given, log))
        connection.sendall(json.dumps(pid).encode() + b"\n")
        os.close(given)
        os.close(log)


def _fork_twice(
    connection: socket.socket, request: dict[str, Any], loaded: Loaded, parent: int, fds: tuple[int, int]
) -> int:
    """The pid of a process that is an orphan, and so a child of whoever adopts those."""
    said, says = os.pipe()
    between = os.fork()
    if between == 0:
        if os.fork():
            os._exit(0)
        connection.close()
        os.setsid()  # before anybody knows it: who ends it ends all of its session
        os.write(says, str(os.getpid()).encode())
        os.close(said)
        os.close(says)
        _be(request, loaded, parent, *fds)
    os.close(says)
    pid = int(os.read(said, 64))
    os.close(said)
    os.waitpid(between, 0)
    return pid


def _be(request: dict[str, Any], loaded: Loaded, parent: int, given: int, log: int) -> None:
    """Never returns. `given` is a zygote's control socket, or a writer's standard input."""
    code = 1
    try:
        while os.getppid() != parent:
            time.sleep(0.001)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        sys.path[:0] = request["path"]
        tempfile.tempdir = None
        module, *arguments = request["argv"]
        if module == WRITING:
            code = _write(given, parent)
        else:
            _be_a_zygote(given, parent, arguments[-1], loaded, request["references"])
    except BaseException:  # noqa: BLE001  what another process would say last, whatever ended it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _be_a_zygote(control: int, parent: int, engine: str, loaded: Loaded, references: str) -> None:
    sys.argv = [ZYGOTE, str(control), str(parent), engine]
    if engine == loaded[0].name:
        zygote.preload = lambda _: loaded
        if engine == "tensorflow":
            _keep_references(references)
            end_served_passes_soon()
    zygote.main()


def end_served_passes_soon() -> None:
    """Else readers of a tf.data service, of which each pass is a job, wait for most of what they take."""
    from tensorflow.python.data.experimental.ops import data_service_ops

    distribute = data_service_ops._distribute
    vars(data_service_ops)["_distribute"] = functools.partial(distribute, task_refresh_interval_hint_ms=ASKED_EACH_MS)


def _keep_references(folder: str) -> None:
    """What trials of an earlier run were held against those of this one are, too, as all of one run are: where nothing
    that a cell names is code of a user's own, which may be another."""
    from harness.engines.tensorflow import trainer
    from harness.engines.tensorflow.reference import run_reference
    from harness.engines.tensorflow.training import Training

    def kept(training: Training, initial: Sequence[VariableState]) -> Reference:
        small = sum(state.copies[0].nbytes for state in initial) <= SMALL
        if small and training.request.scratch and not training.cell.own_code:
            request = training.request.model_copy(update={"scratch": folder})
            training = dataclasses.replace(training, request=request)
        return run_reference(training, initial)

    vars(trainer)["run_reference"] = kept


def _write(orders: int, parent: int) -> int:
    """The exit status."""
    from harness.engines.tensorflow import preparing
    from harness.trial import writing

    preparing.TURN_S = TURN_S
    sys.modules["__main__"] = writing  # of which Dask's processes are told
    os.dup2(orders, 0)
    os.close(orders)
    sys.stdin = os.fdopen(0)
    sys.argv = [WRITING, str(parent)]
    try:
        writing.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


if __name__ == "__main__":
    main()
