"""`python -m harness`, and the command `harness`."""

import contextlib
import gc
import os
import signal
import sys

INTERRUPTED = 130
YOUNG_OBJECTS = 100_000
"""Made before the collector looks for garbage among them: nearly all of a start are of modules, and stay."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in the background of a script
    if heeded:
        signal.signal(signal.SIGINT, _leave)
    gc.set_threshold(YOUNG_OBJECTS)
    from harness.cli import run

    code = run(sys.argv[1:])
    if code == INTERRUPTED:  # all is closed and said; Python itself would end by the signal, or by one that comes now
        os._exit(code)
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


def _leave(*_: object) -> None:
    """Ctrl-C while modules are imported: nothing has been begun, and an exception might be lost in an import."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.write(2, b"harness: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
