"""A process beside the zygote for one case: that it is stopped (SIGSTOP, a debugger) when its parent is killed.

The kernel then asks the zygote to end, but one that is stopped does not act on that, and it and its trials would stay.
"""

import contextlib
import os
import select
import signal
from collections.abc import Callable

GRACE_S = 4.0
"""What the zygote gets to end its trials and itself, once the parent is gone."""


def guard(parent: int, clean_up: Callable[[], None]) -> None:
    """Fork a process that kills this one, and does `clean_up`, when `parent` is gone and this one does not end.

    Only Linux from 5.3 on tells of the end of any process; elsewhere, and where that is forbidden, nothing is done.
    Call it while there is one thread. Trials end with this process, as the kernel sees to.
    """
    if not hasattr(os, "pidfd_open"):
        return
    try:
        ends = [os.pidfd_open(pid) for pid in (parent, os.getpid())]
    except OSError:
        return
    if os.fork():
        for end in ends:
            os.close(end)
        return
    try:
        with contextlib.suppress(OSError):
            _watch(ends[0], ends[1], clean_up)
    finally:
        os._exit(0)


def _watch(parent: int, guarded: int, clean_up: Callable[[], None]) -> None:
    """In the guardian, which has no other file open: the zygote's channel must close with the zygote."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    lowest, highest = sorted((parent, guarded))
    os.closerange(0, lowest)
    os.closerange(lowest + 1, highest)
    os.closerange(highest + 1, max(1024, highest + 1))
    if _ended([parent, guarded], None) == [parent] and not _ended([guarded], GRACE_S):
        signal.pidfd_send_signal(guarded, signal.SIGKILL)
        _ended([guarded], None)
        clean_up()


def _ended(processes: list[int], limit_s: float | None) -> list[int]:
    """Those that have ended, waiting for the first of them."""
    return select.select(processes, [], [], limit_s)[0]
