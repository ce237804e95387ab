"""A process that sees to it that nothing is left when the sweep that started it is gone, however it went.

`python -I -S minder.py '{"run": [...], "afterwards": [...], "remove": [...]}'`: it starts `run` (none where empty)
and waits until that has ended or its own standard input is closed, which the kernel does for a sweep that is
killed. Then it ends what still runs, does `afterwards`, and removes the files. Its exit status is that of `run`.

It is run as a file and imports nothing of this package, so that it starts in hundredths of a second.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys

GRACE_S = 5.0
AFTERWARDS_LIMIT_S = 30.0


def main() -> int:
    """Run; see above."""
    told = json.loads(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the end of the sweep ends it
    child = None
    if told["run"]:
        child = subprocess.Popen(told["run"], stdin=subprocess.DEVNULL, restore_signals=True, preexec_fn=_listening)
    status = _await(child)
    if child is not None and child.poll() is None:
        status = _ended(child)
    if told["afterwards"]:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                told["afterwards"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=AFTERWARDS_LIMIT_S, check=False,
            )  # fmt: skip
    for path in told["remove"]:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108  pathlib would double the time to start
    return status


def _listening() -> None:
    """In the child, before it becomes its program: signals are its own again."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _await(child: "subprocess.Popen[bytes] | None") -> int:
    """Until the child has ended, or standard input is closed."""
    while child is None or child.poll() is None:
        readable, _, _ = select.select([0], [], [], None if child is None else 0.1)
        if readable and not os.read(0, 4096):
            return 0
    return child.returncode


def _ended(child: "subprocess.Popen[bytes]") -> int:
    child.terminate()
    try:
        return child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


if __name__ == "__main__":
    sys.exit(main())
