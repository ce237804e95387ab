"""Temporary folders that even a killed process does not leave behind for good."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

from harness.environment.files import text
from harness.errors import HarnessError

SCRATCH_NAME = re.compile(r"harness-\d+-\w+")
"""What the folders are called: the number is the process that made it, for a person who wonders."""
MARK = ".harness-scratch"
"""A file in each folder of these, and in no other that only has such a name: the hosts that may remove it, a line each.
"""
DYING_S = 4.0
"""How long a process that was killed may yet hold its folder."""


class Scratch:
    """A new folder, removed by `close`; or, when this process is killed, as soon as another one is made.

    Whose folder it is, is told by a lock on it, which the kernel frees however the process ends. A process
    number would not do: another container that shares the folder counts its own processes, and numbers are
    used again. Where several hosts share the folder, a lock may hold on one of them only, so each removes its own.
    Raises OSError when no folder can be made.
    """

    def __init__(self) -> None:
        _remove_abandoned(Path(tempfile.gettempdir()))
        self._folder = tempfile.TemporaryDirectory(prefix=f"harness-{os.getpid()}-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name).resolve()
        self._lock = os.open(self.path, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some network disks have no locks: then nobody else gets one either
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        # not before it is locked: from now on, others remove it as soon as they get the lock
        try:
            _mark(self.path)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Remove the folder and all that is in it. May be called again."""
        self._folder.cleanup()
        _mark_what_is_left(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def scratch_folder() -> Scratch:
    """A new one. HarnessError that names TMPDIR where none can be made."""
    try:
        return Scratch()
    except OSError as error:
        raise HarnessError(f"TMPDIR: no folder for temporary files can be made: {error.strerror or error}") from None


def _own_hosts() -> list[str]:
    """What tells this host from others: as it was booted, the same in each of its containers, and across boots."""
    boot = text(Path("/proc/sys/kernel/random/boot_id"))
    machine = text(Path("/etc/machine-id"))
    name = os.uname().nodename
    known = [f"boot {boot}" if boot else "", f"machine {machine} {name}" if machine else ""]
    return known if any(known) else [f"host {name}"]


def _mark(folder: Path) -> None:
    (folder / MARK).write_text("\n".join(_own_hosts()), encoding="utf-8")


def _mark_what_is_left(folder: Path) -> None:
    """A folder in which a dying process still wrote is there yet, without its mark, and is to be removed later."""
    with contextlib.suppress(OSError):
        if folder.is_dir():
            _mark(folder)


def _marked(place: Path) -> list[Path]:
    """Folders that a process of this user on this host has made."""
    found: list[Path] = []
    own = {*_own_hosts()} - {""}
    with contextlib.suppress(OSError), os.scandir(place) as entries:  # a shared folder need not be readable
        for entry in entries:
            with contextlib.suppress(OSError):  # gone meanwhile
                if SCRATCH_NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    mine = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
                    if mine and own & {*(text(Path(entry.path) / MARK) or "").splitlines()}:
                        found.append(Path(entry.path))
    return found


def _remove_abandoned(place: Path) -> None:
    """Remove the folders of processes that are gone."""
    for folder in _marked(place):
        with contextlib.suppress(OSError):  # still in use, or gone meanwhile
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
                _mark_what_is_left(folder)
            finally:
                os.close(lock)


def _tidied(place: Path) -> bool:
    """Remove abandoned folders; whether no other is there."""
    _remove_abandoned(place)
    return not _marked(place)


def main() -> None:
    """`python -m harness.run.process.scratch`: remove what killed processes left here; some may be dying yet."""
    deadline = time.monotonic() + DYING_S
    while not _tidied(Path(tempfile.gettempdir())) and time.monotonic() < deadline:
        time.sleep(0.2)


if __name__ == "__main__":
    # a job that is cancelled meanwhile has some seconds until it is killed, and this needs no more
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    main()
