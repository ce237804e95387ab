"""The zygote: an engine's framework imported once, then a fork a trial (`harness.trial.serving`).

`python -m harness.trial.zygote FD PID ENGINE [--import-in-trials] [ROOT]` runs it over a control socket. A fork of it
is a fresh process whose framework is imported and has not started, in hundredths of a second instead of an import's
seconds. Where the import itself takes a device that one process may hold, each fork imports the framework instead.
It is not the standard library's forkserver because that is one a program with one environment and
one interpreter, speaks pickle, imports the caller's `__main__` into every child and does not say how
a child ended.
"""

import contextlib
import gc
import os
import re
import shutil
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from harness.errors import HarnessError
from harness.trial.guardian import guard
from harness.trial.orphans import end_orphans
from harness.trial.parent import die_with_parent
from harness.trial.revision import keep_out

if TYPE_CHECKING:
    from harness.protocol.engine import Engine
    from harness.trial.serving import ServingLoop

IN_TRIALS = "--import-in-trials"
"""The argument by which nothing is preloaded."""
PARENT_ENDS_S = 2.0
"""How long the parent that hung up without a word may take to be gone."""


def preload(name: str) -> tuple["Engine", dict[str, str]]:
    """Import what every trial with the engine needs, without starting its framework; the engine, and its versions."""
    start = time.perf_counter()
    gc.disable()  # An import makes no garbage to speak of, and looking for it takes a quarter of TensorFlow's.
    import harness.trial.serving  # noqa: F401  and what every fork will call
    from harness.protocol.engine import IMPORT_S
    from harness.protocol.messages import Message
    from harness.record.model import RecordModel, build
    from harness.trial.engines import engine_of

    engine = engine_of(name)
    engine.catalogue()
    versions = engine.preload()
    build(RecordModel)
    build(Message)
    gc.collect()
    gc.freeze()  # Objects of the import are never garbage; collecting them in a fork would copy their pages.
    gc.enable()
    return engine, {
        **versions,
        "python": sys.version.split()[0],
        IMPORT_S: f"{time.perf_counter() - start:.3f}",
    }


def not_preloaded(name: str) -> tuple["Engine", dict[str, str]]:
    """The engine, whose framework is not imported here, and the packages' versions by their metadata."""
    import harness.trial.serving  # noqa: F401
    from harness.environment.software import package_versions
    from harness.protocol.engine import IMPORT_S
    from harness.trial.engines import engine_of

    engine = engine_of(name)
    engine.catalogue()
    versions = {package: version for package, version in package_versions().items() if version is not None}
    return engine, {**versions, "python": sys.version.split()[0], IMPORT_S: "0"}


def remove_scratch() -> None:
    """Remove the parent's folder for temporary files, of which TMPDIR is a part: it was killed, and cannot."""
    folder = Path(os.environ.get("TMPDIR", "")).parent
    if re.fullmatch(rf"harness-{sys.argv[2]}-\w+", folder.name):
        shutil.rmtree(folder, ignore_errors=True)


def leave(parent_pid: int, own_pid: int, server: "ServingLoop | None" = None) -> NoReturn:
    """End what this process has started, and itself; `server` is None before there is any trial.

    A fork of it that comes here ends alone: the other trials, and the folder, are the zygote's.
    """
    if os.getpid() != own_pid:
        os._exit(1)
    # A process that is killed closes its sockets first, and is gone a moment later.
    until = time.monotonic() + PARENT_ENDS_S
    dismissed = server is not None and server.dismissed
    while not dismissed and os.getppid() == parent_pid and time.monotonic() < until:
        time.sleep(0.01)
    if server is None:
        end_orphans(set())
    else:
        server.end_trials()
    if os.getppid() != parent_pid:
        remove_scratch()
    os._exit(0)


def main() -> None:
    """Run a zygote. Arguments: the control socket's file descriptor, the parent's pid, the engine's name, where trials
    import its framework themselves `IN_TRIALS`, and, where a git revision is measured, the working tree that no module
    must come from."""
    control = socket.socket(fileno=int(sys.argv[1]))
    parent_pid, own_pid = int(sys.argv[2]), os.getpid()
    signal.signal(signal.SIGTERM, lambda *_: leave(parent_pid, own_pid))
    die_with_parent(parent_pid, signal.SIGTERM)
    guard(parent_pid, remove_scratch)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preloads = IN_TRIALS not in sys.argv
    for root in (given for given in sys.argv[4:] if given != IN_TRIALS):
        keep_out(root)
    try:
        engine, versions = (preload if preloads else not_preloaded)(sys.argv[3])
    except HarnessError as error:
        sys.exit(str(error))  # the parent shows the last line of the log
    from harness.trial.serving import ServingLoop  # not before: it needs more than the standard library

    server = ServingLoop(control, engine, preloads)
    signal.signal(signal.SIGTERM, lambda *_: leave(parent_pid, own_pid, server))
    try:
        # of a parent that hangs up with something unread the kernel tells by an error instead of an end
        with contextlib.suppress(ConnectionError):
            server.serve(versions)
    except Exception:  # noqa: BLE001  whatever it is, what trials have left must not stay
        traceback.print_exc()
    leave(parent_pid, own_pid, server)


if __name__ == "__main__":
    main()
