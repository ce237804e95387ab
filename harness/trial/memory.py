"""What of a trial's memory goes back."""

import contextlib
import ctypes
import gc

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
