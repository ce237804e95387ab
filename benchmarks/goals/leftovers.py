"""What a run has while it lives, and what of it is still there later: for `cluster_cleanup.py`.

A process belongs to a run when it has inherited a variable of the run's environment, whoever its parent is by now.
"""

import contextlib
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

VARIABLE = "HARNESS_GOALS_RUN"
LISTENS = "0A"
"""A listening socket's state in /proc/PID/net/tcp."""
SOCKET = re.compile(r"socket:\[(\d+)\]")
NAMESPACE = re.compile(r"net:\[\d+\]")
OWN = "here"
"""Stands for this process's own namespace where the system has none."""


@dataclass(frozen=True)
class Left:
    """What is still there; `jobs` are those of Slurm, None where there is none."""

    processes: int
    ports: int
    namespaces: int
    files: int
    jobs: int | None = None

    @property
    def nothing(self) -> bool:
        """Whether all of it is gone."""
        return not (self.processes or self.ports or self.namespaces or self.files or self.jobs)


@dataclass
class Watched:
    """A run whose processes have `environment` besides what they need; what it had is known by looking.

    `spared` are namespaces that it uses and that somebody else owns.
    """

    folder: Path
    jobs: Callable[[], int] | None = None
    spared: frozenset[str] = frozenset()
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    seen: set[int] = field(default_factory=set)
    """Processes, by number."""
    ports: set[tuple[str, int]] = field(default_factory=set)
    """(network namespace, port) that one of them listened on."""
    namespaces: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.temporary.mkdir()
        self.work.mkdir()

    @property
    def temporary(self) -> Path:
        """The run's TMPDIR."""
        return self.folder / "tmp"

    @property
    def work(self) -> Path:
        """The run's working folder; its results are below."""
        return self.folder / "work"

    @property
    def environment(self) -> dict[str, str]:
        """What marks the run's processes, and keeps its scratch files in one place."""
        return {VARIABLE: self.mark, "TMPDIR": str(self.temporary)}

    def processes(self) -> list[psutil.Process]:
        """All that belong to the run and live, zombies left out."""
        sought = f"{VARIABLE}={self.mark}".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):  # gone meanwhile, or somebody else's
                if sought in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                    found.append(process)
        return [process for process in found if alive(process)]

    def look(self) -> None:
        """Note what there is now."""
        for process in self.processes():
            self.seen.add(process.pid)
            with contextlib.suppress(OSError, psutil.Error):
                namespace = namespace_of(process.pid)
                self.ports |= {(namespace, port) for port in listening(process.pid)}
                if namespace != namespace_of(os.getpid()) and namespace not in self.spared:
                    self.namespaces.add(namespace)

    def left(self) -> Left:
        """What there is now of the run, and of what it had."""
        there = inhabited()
        files = list(self.temporary.rglob("*"))
        files += [path for path in self.work.rglob("*") if path.relative_to(self.work).parts[0] != "results"]
        return Left(
            len(self.processes()),
            sum(_taken(namespace, port, there) for namespace, port in self.ports),
            len(self.namespaces & (there.keys() | mounted())),
            len(files),
            None if self.jobs is None else self.jobs(),
        )

    def clear(self) -> None:
        """Kill what is left of the run, so that it does not disturb the next."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()


def alive(process: psutil.Process) -> bool:
    """Whether a process runs; a zombie has ended."""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def listening(pid: int) -> set[int]:
    """The TCP ports that a process listens on, in whichever namespace it is; psutil only knows our own."""
    own = set(_sockets(pid))
    return {port for port, inode in _listened(pid) if inode in own}


def _sockets(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if found := SOCKET.fullmatch(str(file.readlink())):
                    yield found[1]


def namespace_of(pid: int) -> str:
    """A process's network namespace, as the kernel names it: `net:[4026531840]`."""
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except FileNotFoundError:
        if Path("/proc").exists():
            raise
        return OWN


def inhabited() -> dict[str, int]:
    """Network namespaces that some process is in, or holds open, with one such process."""
    found: dict[str, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.setdefault(namespace_of(int(entry.name)), int(entry.name))
        for opened in _opened(entry):
            found.setdefault(opened, 0)
    return found


def _opened(entry: Path) -> Iterator[str]:
    """Namespaces that a process keeps by an open file."""
    with contextlib.suppress(OSError):
        for file in (entry / "fd").iterdir():
            with contextlib.suppress(OSError):
                if NAMESPACE.fullmatch(name := str(file.readlink())):
                    yield name


def mounted() -> set[str]:
    """Network namespaces that are kept by a mount: those that `ip netns` has given a name."""
    with contextlib.suppress(OSError):
        return set(NAMESPACE.findall(Path("/proc/self/mountinfo").read_text()))
    return set()


def _taken(namespace: str, port: int, there: dict[str, int]) -> bool:
    """Whether nobody else could have the port now: in our own namespace that is tried, elsewhere it is looked up."""
    if namespace in (OWN, namespace_of(os.getpid())):
        return not _free(port)
    pid = there.get(namespace, 0)
    return bool(pid) and port in {listened for listened, _ in _listened(pid)}


def _free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that were closed do not count
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _listened(pid: int) -> set[tuple[int, str]]:
    """(TCP port, inode of the socket) that anybody listens on in the namespace of a process."""
    found = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            rows = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
            fields = [row.split() for row in rows]
            found |= {(int(of[1].rpartition(":")[2], 16), of[9]) for of in fields if of[3] == LISTENS}
    return found
