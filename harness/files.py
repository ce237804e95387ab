"""Reading files that somebody named or a record holds: only where reading ends."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST_RECORDS = 2**31
"""Bytes of what a run keeps; a hundred thousand trials of sixty windows are a tenth of it."""


def descriptor_of(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of the regular file at `path`. OSError that says so where it is none, and nobody is waited for."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)  # the open of a pipe would wait for its other end
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"it is a {'pipe' if stat.S_ISFIFO(mode) else 'device'}, no regular file")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def opened(path: Path) -> BinaryIO:
    """`path` for reading. OSError that says so where it is no regular file: a device or a pipe may have no end."""
    return os.fdopen(descriptor_of(path), "rb")


def read_whole(path: Path, largest: int) -> bytes:
    """All bytes of a regular file of at most `largest`. OSError that says so where it is larger."""
    with opened(path) as stream:
        data = stream.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EINVAL, f"it is larger than {largest >> 10:,} KiB")
    return data
