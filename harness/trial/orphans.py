"""Processes that trials leave behind: the fork server adopts them, so that they can be ended."""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Have the kernel make this process the parent of every descendant whose own parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_orphans(but: set[int]) -> tuple[list[str], list[str]]:
    """Kill every child of this process, and what they leave in turn, but those in `but`; names of those killed.

    And of those that may not be, which have become another user's (setuid): they stay, and are in `but` from now on.
    """
    ended: list[str] = []
    stays: list[str] = []
    while pids := [pid for pid in children() if pid not in but]:
        for pid in pids:
            name = _name(pid)
            try:
                if name is not None:
                    os.kill(pid, signal.SIGKILL)
                    ended.append(name)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
            except PermissionError:
                but.add(pid)
                stays.append(name or "")
    return ended, stays


def children() -> list[int]:
    """Of all threads, dead ones that nobody has waited for included; none where the kernel does not list them."""
    found: list[int] = []
    for listing in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listing.read_text().split())
    return found


def _name(pid: int) -> str | None:
    """What the process is called; None for one that has ended already."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name, _, rest = state.partition("(")[2].rpartition(")")
    return None if rest.split()[0] == "Z" else name
