"""Move into a network namespace, at the very start of a trial's process."""

import contextlib
import ctypes
import os
import socket

from harness.errors import HarnessError

CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000


class NamespaceError(HarnessError):
    """A namespace is gone, or the kernel does not let this process in."""


def enter(namespace: str, user_namespace: str | None = None) -> None:
    """Join the network namespace at a path such as `/proc/PID/ns/net`; the rest of this process's life is there.

    `user_namespace` is the path of the user namespace that owns it, where an ordinary user made it. Call it while the
    process has one thread: only the calling thread and those that it starts later move, and the kernel refuses a user
    namespace to a process with several. Sockets that are open already stay where they are. NamespaceError where the
    kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
    kinds = [(user_namespace, CLONE_NEWUSER)] if user_namespace else []
    with contextlib.ExitStack() as stack:
        opened = []
        for path, kind in [*kinds, (namespace, CLONE_NEWNET)]:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                raise NamespaceError(f"{path} cannot be joined: {error.strerror}") from None
            stack.callback(os.close, fd)
            opened.append((path, fd, kind))
        for path, fd, kind in opened:  # all are open before the first is joined, from where their paths mean them
            if libc.setns(fd, kind):
                raise NamespaceError(f"{path} cannot be joined: {os.strerror(ctypes.get_errno())}")


def call_host(name: str) -> None:
    """Let this thread, and those that it starts later, see the host under another name; nobody else does.

    In a network namespace, for what listens where the host's name leads, which would be an address of the host's.
    NamespaceError where the kernel refuses.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS):
        raise NamespaceError(f"the host cannot be called '{name}': {os.strerror(ctypes.get_errno())}")
    socket.sethostname(name)
