"""Files that survive a kill: atomic replacement, appended lines, a lock that dies with its owner.

Every fault of the operating system becomes a StorageError of one line: the path, the reason the
system gave, and what to do about it.
"""

import contextlib
import errno
import fcntl
import functools
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from harness.errors import StorageError
from harness.files import NO_LOCKS, descriptor_of, lives, no_folder, read_whole
from harness.visible import one_line

LOCK_NAME = ".lock"
_LARGEST_LOCK = 64
"""Bytes of a lock: it holds a pid."""
_MOST_LINKS = 40
"""As many as the kernel follows."""
OF_KERNEL = "it is a file of the kernel"
UNFINISHED = f".{'[0-9a-f]' * 16}.tmp"
"""What matches the file that a process which is killed while it replaces one leaves beside that."""
_LOCK_PATIENCE_S = 0.5
"""A reader that asks whether a run is live holds the lock for microseconds; a writer outwaits it."""

_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of the disk quota",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EROFS: "make it writable",
    errno.EACCES: "get permission for it",
    errno.EPERM: "get permission for it",
    errno.EEXIST: "move what is in the way",
    errno.EINVAL: "put a regular file there",
    errno.EOVERFLOW: "name a smaller file, and of a run measure fewer trials or windows",
    errno.ENOTDIR: "move the file that is where a folder is needed",
    errno.ELOOP: "remove that link",
    errno.EISDIR: "move the folder that is where a file is needed",
    errno.ENAMETOOLONG: "shorten the name",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}


def storage_error(action: str, path: Path, error: OSError, run: Path | None = None) -> StorageError:
    """`cannot ACTION 'PATH': REASON; REMEDY`, for a fault that the operating system reported.

    With `run`, a run that holds trials already, the remedy is to resume it once the fault is mended. What cannot be
    read would not be found in another place.
    """
    taken = no_folder(path) if isinstance(error, (FileExistsError, NotADirectoryError)) else ""
    reason = taken or error.strerror or (os.strerror(error.errno) if error.errno else str(error))
    remedy = _REMEDIES.get(error.errno or 0, "check the disk")
    text = f"cannot {action} '{path}': {reason}; {remedy}"
    if run:
        return StorageError(text, run.name)
    return StorageError(text if action == "read" else f"{text}, or choose another place with --results DIR")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong while `path` is read, as a StorageError: what the system reports, and too little memory."""
    try:
        yield
    except OSError as error:
        raise storage_error("read", path, error) from None
    except MemoryError:
        raise StorageError(
            f"cannot read '{path}': there is not enough memory for what it holds; free some, or raise the limit "
            "(ulimit -v)"
        ) from None


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder. A name that the system refuses is none: who then writes there is told why."""
    try:
        return path.is_dir()
    except OSError:
        return False


def to_json(model: BaseModel, indent: int | None = None) -> bytes:
    """The model as UTF-8 JSON; NaN and infinities, which JSON lacks, become null.

    Text that a process printed, or an argument, may hold bytes that are no UTF-8 (surrogate escapes
    in Python); they are written as `\\udcXX`, because a record must not be lost to them.
    """
    try:
        return model.model_dump_json(indent=indent).encode()
    except PydanticSerializationError:
        printable = type(model).model_validate(_printable(model.model_dump()))
        return printable.model_dump_json(indent=indent).encode()


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(item) for item in value]
    return value


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems cannot sync a folder; the file itself was synced.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte. A disk that fills up first takes a part and only then fails. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` durably; whoever reads sees the old content or the new, never a mixture.

    A link is followed: what it names gets the data, and its mode stays. A device or a pipe is written to and stays what
    it is; a file of the kernel, which is no place for data, is refused. Raises OSError, and then the old content is
    untouched.
    """
    path = behind_links(path)
    if _is_setting(path):
        raise OSError(errno.EINVAL, OF_KERNEL)
    if may_be_replaced(path):
        _put(path, data)
    else:
        _write_in_place(path, data)


def replace_own_file(path: Path, data: bytes) -> None:
    """`replace_file` for what a run keeps in its folder: a link there is refused, and what it names is untouched."""
    refuse_link(path)
    _put(path, data)


def refuse_link(path: Path) -> None:
    """OSError where `path` is a link: a run writes in its own folder and nowhere else."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link")


def own_descriptor(path: Path) -> int:
    """A descriptor of a file that a run appends to, made where there is none. OSError where a link or no file is."""
    refuse_link(path)
    return descriptor_of(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)


def _put(path: Path, data: bytes) -> None:
    temporary, descriptor = _new_file_beside(path)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _new_file_beside(path: Path) -> tuple[Path, int]:
    """A file of a name of its own, since what lies beside `path` is the user's, with the mode of what is at `path`; and
    its descriptor. Raises OSError."""
    new, flags = path.with_name(f".{secrets.token_hex(8)}.tmp"), os.O_WRONLY | os.O_CREAT | os.O_EXCL
    if not path.exists():
        return new, os.open(new, flags, 0o666)
    mode = stat.S_IMODE(path.stat().st_mode)
    descriptor = os.open(new, flags, mode)
    with contextlib.suppress(OSError):  # of a file system that has no modes
        os.fchmod(descriptor, mode)  # the umask has taken from what `open` was given
    return new, descriptor


def behind_links(path: Path) -> Path:
    """What `path` is in the end, which need not exist. A name in /proc or /sys stays, as that of an open file
    (/dev/stdout, /dev/fd/63).

    Raises OSError for links that lead in a circle.
    """
    for _ in range(_MOST_LINKS):
        if not path.is_symlink() or _is_of_kernel(path):
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def may_be_replaced(path: Path) -> bool:
    """Whether another file may take the place of `path`: there is none, or a regular one that is no open file."""
    return not path.exists() or (path.is_file() and not _is_open_file(path))


def is_setting(path: Path) -> bool:
    """Whether writing to `path`, which need not exist, would tell the kernel something: it is a file, or would be a
    folder, of /proc or /sys, and none that this process has open. OSError for links in a circle."""
    return _is_setting(behind_links(path))


def _is_setting(path: Path) -> bool:
    return _is_of_kernel(path) and not _is_open_file(path)


def _is_of_kernel(path: Path) -> bool:
    folder = Path(os.path.realpath(path.parent))
    return any(folder.is_relative_to(system) for system in ("/proc", "/sys"))


def _is_open_file(path: Path) -> bool:
    return os.path.realpath(path.parent) == os.path.realpath("/proc/self/fd")


def _write_in_place(path: Path, data: bytes) -> None:
    """Write to a device or a pipe as a shell's `>>` does. OSError for what holds a disk, and a pipe nobody reads."""
    if path.is_block_device():
        raise OSError(errno.EINVAL, "it is a disk")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
    try:
        os.set_blocking(descriptor, True)
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


UNFINISHED_S = 5.0
"""How long ago a file was begun that nobody finishes any more."""


def remove_unfinished(folder: Path, older_s: float = 0.0) -> None:
    """Remove what killed processes have left beside files that they were replacing; with `older_s`, which may be
    somebody's who still writes, only what is older."""
    with contextlib.suppress(OSError):  # it is in nobody's way
        for left in folder.glob(UNFINISHED):
            if not older_s or time.time() - left.stat().st_mtime > older_s:
                left.unlink()


def append_line(descriptor: int, line: bytes) -> None:
    """Append `line` and a newline durably, or leave the file as it was.

    A kill between two instructions leaves at most an unterminated tail, which `whole_length` finds.
    Raises OSError; the part that was written has then been taken back, if the system allows it.
    """
    before = os.fstat(descriptor).st_size
    kept = False
    try:
        write_all(descriptor, line + b"\n")
        os.fsync(descriptor)
        kept = True
    finally:
        # In a `finally`, because Ctrl-C between the two calls must not leave half a line either.
        if not kept:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, before)
                os.fsync(descriptor)


class FolderLock:
    """An exclusive lock on a folder, released by the system when its owner dies.

    `flock`, not POSIX record locks: those are dropped when *any* descriptor of the file is closed, so
    asking in the same process whether the run is live would silently unlock it. On a file system without locks nobody
    is kept out, which is said once.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock. Raises StorageError that names the owner's pid, OSError if it cannot be made or is no file."""
        self._path = folder / LOCK_NAME
        self._descriptor: int | None = None
        deadline = time.monotonic() + _LOCK_PATIENCE_S
        while not self._try_once():
            if time.monotonic() > deadline:
                raise StorageError(
                    f"'{folder}' is being written by another process (pid {owner(folder)}): "
                    "wait for it to end, or stop it"
                )
            time.sleep(0.02)

    def _try_once(self) -> bool:
        descriptor = descriptor_of(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)  # it is emptied below
        try:
            self._flock(descriptor)
            # The last owner unlinks the file before it lets go: a lock on an unlinked file guards nothing.
            mine, there = os.fstat(descriptor), self._path.stat()
            if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
                os.close(descriptor)
                return False
            with contextlib.suppress(OSError):  # the pid is for the message only; a full disk says so elsewhere
                os.ftruncate(descriptor, 0)
                write_all(descriptor, f"{os.getpid()}\n".encode())
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def _flock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            _tell_of_no_locks(self._path.parent)

    def release(self) -> None:
        """Remove the lock and its file; harmless when done twice."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None


@functools.cache  # once for each folder
def _tell_of_no_locks(folder: Path) -> None:
    said = f"the file system of '{folder}' has no locks: see to it that no other process writes there meanwhile"
    with contextlib.suppress(OSError):
        print(f"harness: {one_line(said)}", file=sys.stderr, flush=True)


def is_locked(folder: Path) -> bool:
    """True while a living process holds the folder's lock."""
    try:
        descriptor = descriptor_of(folder / LOCK_NAME)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:  # a file system without locks: who said that it writes there, as far as this host knows
        return error.errno in NO_LOCKS and (pid := owner(folder)).isdecimal() and lives(pid)
    finally:
        os.close(descriptor)
    return False


def owner(folder: Path) -> str:
    """The pid written in the folder's lock, or `unknown`."""
    try:
        return read_whole(folder / LOCK_NAME, _LARGEST_LOCK).decode("ascii", "replace").strip() or "unknown"
    except OSError:
        return "unknown"
