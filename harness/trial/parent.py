"""A process that must not outlive its parent."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent ends; exit if that happened already, or if another
    process stands between the two."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, by)
    if os.getppid() != parent_pid:
        print(
            f"it has another parent than the process that started it, {parent_pid}: an interpreter that is a script "
            "must run Python by exec",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)
