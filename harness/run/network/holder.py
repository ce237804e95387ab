"""A process that is a network namespace: it lives as long as the process does, and has no name to clean up.

`python -I -S holder.py FD PID` runs it over a control socket; PID is the parent's. With a third argument it makes
a user namespace of its own first, so that an ordinary user may. It runs the programs that it is told to inside
its namespace, and ends, with all that it started, when the parent does, however the parent ends.

It is run as a file and imports nothing of this package, so that it starts in hundredths of a second.

Messages, a JSON line each. To the parent, once: `{"ready": pid}` or `{"refused": reason}`. From the parent:
`{"run": [program, argument, …], "input": text, "wait": true, "vital": false}`, answered when the program has ended by
`{"status": s, "output": text}` (standard output and error together); with `"wait": false` the answer comes at the
program's first line, with that line and a null status, and the program runs on. When one that runs on and is vital
ends, the holder ends too: a network without its switch is no network.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import NoReturn

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
REQUEST = "16sH22x"
"""`struct ifreq` with a name and flags."""

LIBC = ctypes.CDLL(None, use_errno=True)
VITAL: set[int] = set()
"""Programs without which this process shall not be."""


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends (precisely: the thread of it that started this one)."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def isolate(as_user: bool) -> None:
    """Move into a new network namespace, of a new user namespace where asked for. OSError when refused."""
    user, group = os.geteuid(), os.getegid()
    if LIBC.unshare(CLONE_NEWNET | (CLONE_NEWUSER if as_user else 0)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    if as_user:
        # Everybody stays who they are: files keep their owners for those who join.
        with contextlib.suppress(FileNotFoundError):  # kernels before 3.19 do not ask for it
            Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def loopback_up() -> None:
    """A new namespace's loopback is down, and `ip` would need to be installed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack(REQUEST, b"lo", 0))
        flags = struct.unpack(REQUEST, answer)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack(REQUEST, b"lo", flags | IFF_UP))


def obey(command: list[str], text: str, wait: bool, vital: bool) -> tuple[int | None, str]:
    """(exit status, output) of a program, or (None, its first line) while it runs on."""
    stdin = os.memfd_create("input")
    os.write(stdin, text.encode())
    os.lseek(stdin, 0, os.SEEK_SET)
    read, write = os.pipe()
    holder = os.getpid()
    pid = os.fork()
    if pid == 0:
        become(command, holder, stdin, write)
    os.close(stdin)
    os.close(write)
    said = b""
    while wait or b"\n" not in said:
        data = os.read(read, 65536)
        if not data:
            break
        said += data
    os.close(read)
    if not wait and b"\n" in said:
        if vital:
            VITAL.add(pid)
            watch()  # it may have ended already
        return None, said.decode(errors="replace").strip()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), said.decode(errors="replace").strip()


def become(command: list[str], holder: int, stdin: int, output: int) -> NoReturn:
    """In the fork: be the program."""
    try:
        die_with_parent(holder)
        for source, target in ((stdin, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def watch(*_: object) -> None:
    """End when a vital program has: the kernel says whenever any program ends, also while nothing is asked."""
    for pid in VITAL:
        if os.waitpid(pid, os.WNOHANG)[0]:
            os._exit(1)


def reap() -> None:
    """Programs that ran on and have ended since."""
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            if pid in VITAL:
                os._exit(1)


def serve(control: socket.socket) -> None:
    """Do what each line says, until the parent's end is closed."""
    with control.makefile("rb") as lines:
        for line in lines:
            reap()
            message = json.loads(line)
            status, output = obey(message["run"], message["input"], message["wait"], message["vital"])
            tell(control, {"status": status, "output": output})


def tell(control: socket.socket, message: dict[str, object]) -> None:
    """One message to the parent."""
    control.sendall(json.dumps(message).encode() + b"\n")


def main() -> None:
    """Arguments: the control socket's file descriptor, the parent's pid, and `user` for a user namespace."""
    os.set_inheritable(int(sys.argv[1]), False)
    control = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGCHLD, watch)
    try:
        isolate(as_user="user" in sys.argv[3:])
        loopback_up()
    except OSError as error:
        tell(control, {"refused": error.strerror or errno.errorcode.get(error.errno or 0, str(error))})
        return
    tell(control, {"ready": os.getpid()})
    with contextlib.suppress(OSError):  # the parent is gone, and so will this be
        serve(control)


if __name__ == "__main__":
    main()
