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

SCRATCH_NAME = re.compile(r"harness-\d+-\w+")
"""What the folders are called: the number is the process that made it, for a person who wonders."""
DYING_S = 4.0
"""How long a process that was killed may yet hold its folder."""


class Scratch:
    """A new folder, removed by `close`; or, when this process is killed, as soon as another one is made.

    Whose folder it is, is told by a lock on it, which the kernel frees however the process ends. A process
    number would not do: another container that shares the folder counts its own processes, and numbers are
    used again. Raises OSError when no folder can be made.
    """

    def __init__(self) -> None:
        _remove_abandoned(Path(tempfile.gettempdir()))
        while True:
            self._folder = tempfile.TemporaryDirectory(prefix=f"harness-{os.getpid()}-", ignore_cleanup_errors=True)
            self.path = Path(self._folder.name).resolve()
            with contextlib.suppress(FileNotFoundError):
                self._lock = os.open(self.path, os.O_RDONLY)
                with contextlib.suppress(OSError):  # some network disks have no locks: then nobody else gets one either
                    fcntl.flock(self._lock, fcntl.LOCK_EX)
                if self.path.is_dir():
                    return
                os.close(self._lock)
            self._folder.cleanup()  # between its making and its locking, another process took it for abandoned

    def close(self) -> None:
        """Remove the folder and all that is in it. May be called again."""
        self._folder.cleanup()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _remove_abandoned(place: Path) -> None:
    """Remove the folders of processes that are gone."""
    found: list[os.DirEntry[str]] = []
    with contextlib.suppress(OSError), os.scandir(place) as entries:  # a shared folder need not be readable
        found = [
            entry for entry in entries if SCRATCH_NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]
    for entry in found:
        with contextlib.suppress(OSError):  # somebody else's, still in use, or gone meanwhile
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            lock = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(lock)


def _tidied(place: Path) -> bool:
    """Remove abandoned folders; whether no other is there."""
    _remove_abandoned(place)
    return not any(SCRATCH_NAME.fullmatch(entry.name) for entry in place.iterdir())


def main() -> None:
    """`python -m harness.run.process.scratch`: remove what killed processes left here; some may be dying yet."""
    deadline = time.monotonic() + DYING_S
    while not _tidied(Path(tempfile.gettempdir())) and time.monotonic() < deadline:
        time.sleep(0.2)


if __name__ == "__main__":
    # a job that is cancelled meanwhile has some seconds until it is killed, and this needs no more
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    main()
