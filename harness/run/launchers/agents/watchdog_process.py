"""A process that sees to it that nothing is left when the sweep that started it is gone, however it went.

`python -I -S watchdog_process.py '{"first": [...], "text": "...", "limit_s": 20, "run": [...], "patience_s": 3,
"ending": [...], "afterwards": [...], "left": [...], "remove": [...]}'`; an empty list stands for nothing. It runs
`first` to its end, with `text` as its standard input, also when the sweep is gone meanwhile: a program that was
broken off may have had its effect or may have it yet. How it ended is told in a line of JSON,
`{"status": s, "output": text, "error": text}`,
with a null status where it did not end within `limit_s`. Then it starts `run` and waits until that has ended or its own
standard input is closed, which the kernel does for a sweep that is killed; without `run` it waits for the latter. It
ends what still runs `patience_s` later, waits as long at most while `ending` says something, which then ends by
itself, does `afterwards` until `left` says nothing, and removes the files. A `run`
that ended well has tidied up by itself and needs no `afterwards`. Its exit status is that of `run`.

It is run as a file and imports nothing of this package, so that it starts in hundredths of a second.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

GRACE_S = 5.0
AFTERWARDS_LIMIT_S = 30.0
LOOK_EVERY_S = 0.2
AGAIN_AFTER_S = (0.0, 1.0, 2.0, 3.0)
"""`afterwards` is done at once, and again where something is left, or where nobody knows what `first` will yet do."""


def main() -> int:
    """Run; see above."""
    told = json.loads(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the end of the sweep ends it
    sure = not told["first"] or _done_first(told)
    child = None
    if told["run"]:
        child = subprocess.Popen(told["run"], stdin=subprocess.DEVNULL, restore_signals=True, preexec_fn=_listening)
    status = _await(child)
    if child is not None and child.poll() is None:
        status = _ended(child, told["patience_s"])
    if told["ending"]:
        _let_end(told["ending"], told["patience_s"])
    if told["afterwards"] and (child is None or status):
        _clean_up(told["afterwards"], told["left"], sure)
    for path in told["remove"]:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108  pathlib would double the time to start
    return status


def _done_first(told: dict[str, object]) -> bool:
    """Run `first`, and tell how it ended; whether it did by itself."""
    status, output, error = _said(told["first"], str(told["text"]), float(str(told["limit_s"])))
    print(json.dumps({"status": status, "output": output, "error": error}), flush=True)
    return status is not None


def _let_end(ending: list[str], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and _said(ending)[:2] not in ((0, ""), (127, "")):
        time.sleep(LOOK_EVERY_S)


def _clean_up(afterwards: list[str], left: list[str], sure: bool) -> None:
    for wait_s in AGAIN_AFTER_S:
        time.sleep(wait_s)
        _said(afterwards)
        if sure and (not left or _said(left)[:2] == (0, "")):
            return


def _said(program: object, text: str = "", limit_s: float = AFTERWARDS_LIMIT_S) -> tuple[int | None, str, str]:
    """(exit status, output, error) of a program; the status is None where it did not end within the limit."""
    try:
        done = subprocess.run(
            program, input=text, capture_output=True, text=True, timeout=limit_s, check=False, preexec_fn=_listening
        )  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        return None, "", ""
    except OSError as error:
        return 127, "", str(error.strerror or error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


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


def _ended(child: "subprocess.Popen[bytes]", patience_s: float) -> int:
    """See it out. What ends by itself can tidy up; srun, asked to end, kills what it has started at once."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return child.wait(patience_s)
    child.terminate()
    try:
        return child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


if __name__ == "__main__":
    sys.exit(main())
