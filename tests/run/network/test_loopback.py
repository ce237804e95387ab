"""A loopback of one's own: reached from inside, by nobody outside, and gone with whoever made it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.run.network import NotAvailable, PrivateLoopback, loopback_available, namespace
from tests.run.network.conftest import said_in, within

NOBODY = 65534
TALK = """
import os, socket
with socket.create_server(("127.0.0.1", 0)) as listening:
    with socket.create_connection(listening.getsockname()) as connection:
        port = listening.getsockname()[1]
print(json.dumps([port, os.geteuid(), os.stat(__import__("harness").__file__).st_uid]))
"""
AS_A_USER = """
import contextlib, ctypes, os, signal, socket, sys
from harness.run.network import PrivateLoopback, namespace
from harness.trial.namespace import enter

"".encode("idna")  # which a user who cannot read this Python could not import
PR_SET_PDEATHSIG, PR_GET_PDEATHSIG = 1, 2
namespace.PYTHON = (sys.argv[1], "-I", "-S")
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
with contextlib.closing(PrivateLoopback()) as made:
    [host] = made.hosts
    print(host.user_namespace is not None, flush=True)
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        enter(host.namespace, host.user_namespace)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            socket.create_connection(listening.getsockname())
        kept = ctypes.c_int()
        libc.prctl(PR_GET_PDEATHSIG, ctypes.byref(kept))
        print(os.geteuid(), kept.value, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.usefixtures("loopback")
def test_processes_inside_reach_each_other_and_stay_who_they_are() -> None:
    with contextlib.closing(PrivateLoopback()) as made:
        [host] = made.hosts
        assert host.address == "127.0.0.1"
        _, user, owner = said_in(host, TALK)
    assert (user, owner) == (os.geteuid(), Path("harness/__init__.py").stat().st_uid)


@pytest.mark.usefixtures("loopback")
def test_what_listens_outside_is_not_reached_from_inside() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, contextlib.closing(PrivateLoopback()) as made:
        code = f"import socket; s = socket.socket(); print(s.connect_ex(('127.0.0.1', {listening.getsockname()[1]})))"
        assert said_in(made.hosts[0], code) != 0


@pytest.mark.usefixtures("loopback")
def test_nothing_is_left_when_it_ends() -> None:
    with contextlib.closing(PrivateLoopback()) as made:
        [host] = made.hosts
        namespace = Path(host.namespace)
        assert namespace.exists()
    assert within(5, lambda: not namespace.exists())


def python_of_nobody() -> str:
    """A Python that an ordinary user may start, and that reads the holder's program."""
    if os.geteuid() != 0:
        pytest.skip("only root can become an ordinary user")
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            reading = [python, "-c", f"open({str(namespace.PROGRAMS / 'holder.py')!r})"]
            if subprocess.run(reading, user=NOBODY, capture_output=True).returncode == 0:
                return python
    pytest.skip("an ordinary user can start no Python here, or not read this checkout")


@pytest.mark.slow
def test_an_ordinary_user_has_one_too_and_members_still_end_with_their_parent() -> None:
    arguments = [python_of_nobody(), str(NOBODY)]
    done = subprocess.run([sys.executable, "-c", AS_A_USER, *arguments], capture_output=True, text=True)
    if "NotAvailable: the kernel refuses" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stdout.split() == ["True", str(NOBODY), str(int(signal.SIGKILL))], done.stderr


def test_a_refusal_of_the_kernel_is_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing = tmp_path / "holder.py"
    refusing.write_text('import os, sys\nos.write(int(sys.argv[1]), b\'{"refused": "Operation not permitted"}\\n\')\n')
    monkeypatch.setattr("harness.run.network.namespace.PROGRAMS", tmp_path)
    reason = "the kernel refuses a user and network namespace: Operation not permitted"
    assert loopback_available() == reason
    with pytest.raises(NotAvailable, match=reason):
        PrivateLoopback()


def test_a_holder_that_does_not_start_is_a_reason_and_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("harness.run.network.namespace.PROGRAMS", tmp_path)
    assert loopback_available() == "the process that holds a network namespace is gone"
