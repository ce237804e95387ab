"""Where networks cannot be emulated, their tests are skipped with the reason that a user would read."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.run.network import NetworkHost, available, loopback_available

JOINING = """
import json, sys
sys.path.insert(0, {root!r})
from harness.trial.namespace import enter
enter({namespace!r}, {user_namespace!r})
{code}
"""


@pytest.fixture(scope="session")
def emulation() -> None:
    """Root, with the tools and a kernel that lets it."""
    reason = available()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def loopback() -> None:
    """A kernel that gives this user a namespace."""
    reason = loopback_available()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def link_that_stays() -> Iterator[Callable[[str], str]]:
    """`link_of`, of a namespace that is held open until the test ends: the kernel would give the number of one that is
    gone to the next, which may be another test's."""
    with contextlib.ExitStack() as stack:
        yield lambda path: f"net:[{os.fstat(stack.enter_context(Path(path).open()).fileno()).st_ino}]"


def said_in(host: NetworkHost, code: str, user: int | None = None) -> Any:
    """What a process that has entered a host's namespace prints, which is JSON."""
    text = JOINING.format(root=str(Path.cwd()), namespace=host.namespace, user_namespace=host.user_namespace, code=code)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=30, user=user)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def within(limit_s: float, holds: Callable[[], bool]) -> bool:
    """Whether something comes true within a time."""
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def ended(pid: int) -> bool:
    """Whether a process has; a zombie that nobody has reaped yet has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def link_of(namespace: str) -> str:
    """What a namespace's path leads to, which is its identity: `net:[4026531840]`."""
    return str(Path(namespace).readlink())


def members(namespace: str) -> list[int]:
    """Processes in a network namespace, given by `link_of`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if link_of(f"{entry}/ns/net") == namespace:
                found.append(int(entry.name))
        except OSError:  # gone meanwhile, or not ours to look at
            continue
    return found
