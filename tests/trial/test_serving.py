"""What becomes of a trial that a fork server cannot fork, of what trials leave, and of the fork server's own forks."""

import errno
import os
import socket
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from harness.protocol.channel import Channel
from harness.protocol.control import EVENTS, Death, Spawn
from harness.trial.orphans import _name, children, end_orphans
from harness.trial.serving import ServingLoop
from harness.trial.zygote import leave
from tests.run.process.zygotes import request


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_a_trial_that_cannot_be_forked_crashes_alone_and_its_log_says_why(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fork", refused)
    engine: Any = None
    ours, theirs = socket.socketpair()
    channel, given = socket.socketpair()
    with ours, theirs, channel:
        serving = ServingLoop(theirs, engine)
        with given, (tmp_path / "log").open("w") as log:
            order = Spawn(number=7, request=request(0)).model_dump_json().encode() + b"\n"
            socket.send_fds(ours, [order], [given.fileno(), log.fileno()])
        assert serving._receive(), "it serves others"
        line = Channel(ours).receive_line(0.0)
        assert line is not None
        assert EVENTS.validate_json(line) == Death(number=7, status=1, left=[])
        assert channel.recv(1) == b"", "nobody has the other end"
    assert (tmp_path / "log").read_text() == f"OSError: no process could be forked: {os.strerror(number)}\n"
    for fd in (serving._wake_read, serving._wake_write):
        os.close(fd)


def test_a_fork_of_the_fork_server_that_is_asked_to_leave_ends_alone(tmp_path: Path) -> None:
    server: Any = SimpleNamespace(dismissed=True, end_trials=lambda: (tmp_path / "ended").touch())
    zygote, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            leave(os.getppid(), zygote, server)
        finally:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert not list(tmp_path.iterdir())


def test_a_process_that_may_not_be_ended_stays_and_is_named_once_and_the_others_are_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kill = os.kill

    def refused_once_setuid(pid: int, number: int) -> None:
        if pid == setuid.pid:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        kill(pid, number)

    but = set(children())
    setuid, other = subprocess.Popen(["sleep", "60"]), subprocess.Popen(["tail", "-f", os.devnull])
    while not {"sleep", "tail"} <= {_name(pid) for pid in (setuid.pid, other.pid)}:
        time.sleep(0.01)  # until each is what it is called
    monkeypatch.setattr(os, "kill", refused_once_setuid)
    assert end_orphans(but) == (["tail"], ["sleep"])
    assert end_orphans(but) == ([], [])
    monkeypatch.undo()
    setuid.kill()
    setuid.wait()
    other.wait()
