"""What runs in the process that has imported a framework, and forks zygotes: see `tests.preloaded`.

It knows nothing but what a zygote does: the interpreter of an engine has no more.
"""

import json
import os
import socket
import sys
import tempfile
import time
from typing import Any

from harness.protocol.engine import Engine
from harness.trial import zygote

MODULE = "harness.trial.zygote"
Loaded = tuple[Engine, dict[str, str]]


def main() -> None:
    """Import what an engine needs, then fork a zygote for each request. Arguments: the socket's file descriptor, the
    parent's pid, and the engine's name."""
    connection, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    zygote.die_with_parent(parent)
    loaded = zygote.preload(sys.argv[3])
    connection.sendall(b'"ready"\n')
    while received := socket.recv_fds(connection, 1 << 20, 2):
        data, (control, log), _, _ = received
        while not data.endswith(b"\n"):
            data += connection.recv(1 << 20)
        pid = _fork_twice(connection, json.loads(data), loaded, parent, (control, log))
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
        sys.path[:0] = request["path"]
        tempfile.tempdir = None
        of, _control, _parent, engine = request["argv"]
        sys.argv = [of, str(control), str(parent), engine]
        if engine == loaded[0].name:
            zygote.preload = lambda _: loaded
        zygote.main()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
