"""Reading files that somebody named or a record holds: only where reading ends."""

import contextlib
import errno
import fcntl
import io
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""What says that a file system has none, as Lustre that is mounted without `flock`."""
LARGEST_RECORDS = 2**31
"""Bytes of what a run keeps: about six hundred thousand trials of ten windows (`harness.spec.bounds`)."""
_MORE = 2**16
LOOK_S = 0.02
"""How often one that waits for a lock looks whether it is free, in seconds."""
END_OF_LOG = 2**20
"""Bytes: the stacks of hundreds of threads."""
HEAD_OF_LOG = 2**16
LONGEST_LOG = 4 * END_OF_LOG
"""Bytes at which a log is cut: HEAD_OF_LOG of its beginning and half of END_OF_LOG of its end stay."""


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


def lock_within(descriptor: int, limit_s: float, waits: Callable[[], None] | None = None) -> bool:
    """Take the lock of an open file, which the system frees where its holder is killed; False where another process has
    held it for so long. On a file system without locks nobody is kept out. `waits` is called once, where somebody is
    waited for."""
    deadline = time.monotonic() + limit_s
    for tries in itertools.count():
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno in NO_LOCKS:
                break
            if not isinstance(error, BlockingIOError):
                raise
            if waits is not None and tries == 0:
                waits()
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_S)
    return True


def lives(pid: str) -> bool:
    """Whether this host has a process of that number, whoever's; ValueError for what is none."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


@contextlib.contextmanager
def hold_folder(folder: Path, limit_s: float) -> Iterator[bool]:
    """Hold a folder against other processes: False where another has held it for so long. On a file system without
    locks nobody is waited for. OSError where the folder cannot be opened."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            free = lock_within(descriptor, limit_s)
        except OSError:
            free = True
        yield free
    finally:
        os.close(descriptor)


def opened(path: Path, largest: int | None = None) -> BinaryIO:
    """`path` for reading. OSError that says so where it is no regular file, which may have no end, or has more than
    `largest` bytes."""
    stream = os.fdopen(descriptor_of(path), "rb")
    if largest is not None and os.fstat(stream.fileno()).st_size > largest:
        stream.close()
        raise _larger_than(largest)
    return stream


def read_whole(path: Path, largest: int) -> bytes:
    """All bytes of a regular file of at most `largest`. OSError that says so where it is larger."""
    with opened(path, largest) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(size + 1)  # as many bytes as are asked for are set aside, so never `largest` of them
        while size < len(data) <= largest:  # it has grown, or tells no size, as files in /proc do not
            size = len(data)
            data += stream.read(min(max(_MORE, size), largest + 1 - size))
    if len(data) > largest:
        raise _larger_than(largest)
    return data


def read_end(path: Path) -> str:
    """The end of a log, of which a person is shown some lines. OSError that says so where it is no regular file."""
    with io.TextIOWrapper(opened(path), "utf-8", "replace") as text:
        text.buffer.seek(max(0, os.fstat(text.fileno()).st_size - END_OF_LOG))
        return text.read(END_OF_LOG)


def new_log(path: Path) -> BinaryIO:
    """An empty file that processes append what they print to, wherever its end is by then: it may be cut meanwhile."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666), "wb")


def cut_log(descriptor: int, left_out: int = 0) -> int:
    """Where a log is longer than is kept, leave its beginning and its end, and say between them how much is left out.

    How many bytes that is by now; `left_out` is how many it was before. Whoever appends to the log goes on.
    """
    with contextlib.suppress(OSError):  # the log is then as it was, and is cut the next time
        if (size := os.fstat(descriptor).st_size) > LONGEST_LOG:
            end = os.pread(descriptor, END_OF_LOG // 2, size - END_OF_LOG // 2)
            gone = left_out + size - HEAD_OF_LOG - len(end)
            kept = f"\n[harness: {gone:,} bytes of this log are left out]\n".encode() + end
            # over what is there: a full disk has no room for it elsewhere, and others may take what is cut off
            with Path(f"/dev/fd/{descriptor}").open("r+b", buffering=0) as log:  # which does not append
                if os.pwrite(log.fileno(), kept, HEAD_OF_LOG) == len(kept):
                    os.ftruncate(descriptor, HEAD_OF_LOG + len(kept))
                    left_out = gone
    return left_out


def no_folder(path: Path) -> str:
    """What keeps `path` from being a folder, or from becoming one, in words; empty where nothing does."""
    for place in (path, *path.parents):
        who = "it" if place == path else f"'{place}'"
        try:
            mode = place.stat().st_mode
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP) and place.is_symlink():
                return f"{who} is a link that leads nowhere"
            continue  # what is above it tells
        if stat.S_ISDIR(mode):
            return ""
        return f"{who} is a {'file' if stat.S_ISREG(mode) else 'pipe' if stat.S_ISFIFO(mode) else 'device'}, no folder"
    return ""


def default_data_dir() -> Path:
    """`$XDG_CACHE_HOME/tf-distribute-harness`, under `~/.cache` where that variable is not set."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "tf-distribute-harness"


def _larger_than(largest: int) -> OSError:
    return OSError(errno.EOVERFLOW, f"it is larger than {largest >> 10:,} KiB")
