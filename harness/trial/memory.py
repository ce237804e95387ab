"""How much memory a trial took, and what of it goes back."""

import contextlib
import ctypes
import gc
import sys
from pathlib import Path

LARGE = 32 * 2**20
"""Bytes of trained state whose proof leaves so much behind that to look for it is worth the time."""


def let_go(state_bytes: int) -> None:
    """Give back to the machine what the proof of a large state has left: other trials are alive beside this one.

    A reference's model lies in cycles, and glibc keeps freed pages for as long as anything lies above them.
    """
    if state_bytes < LARGE:
        return
    gc.collect()
    with contextlib.suppress(AttributeError):  # which glibc alone has
        ctypes.CDLL(None).malloc_trim(0)


def peak_memory_bytes() -> int | None:
    """The process's largest resident set since its start, shared pages of the zygote included."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
