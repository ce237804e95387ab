"""A namespace is a process: what runs in it, what it says when that fails, and that it leaves with its parent."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.run.network.namespace import PYTHON, Namespace, NetworkError, NotAvailable, TooSlow
from tests.run.network.conftest import ended, link_of, members, within

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("emulation")]
SHELL = shutil.which("sh") or "/bin/sh"


@pytest.fixture
def held() -> Iterator[Namespace]:
    namespace = Namespace()
    namespace.wait()
    yield namespace
    namespace.close()


def test_a_program_runs_inside_the_namespace_and_not_here(held: Namespace) -> None:
    inside = held.run(SHELL, "-c", "readlink /proc/self/ns/net")
    assert inside == link_of(held.host("").namespace)
    assert inside != link_of("/proc/self/ns/net")


def test_a_program_reads_what_it_is_given(held: Namespace) -> None:
    assert held.run(SHELL, "-c", "cat", text="ü and b\n" * 20000).count("ü and b") == 20000


def test_nothing_but_a_loopback_that_is_up_is_there_at_first(held: Namespace) -> None:
    assert held.run(SHELL, "-c", "cat /proc/net/dev | tail -n +3 | cut -d : -f 1").split() == ["lo"]
    listen = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
    assert held.run(*PYTHON, "-c", listen) == ""


def test_the_last_that_a_failing_program_says_is_the_error(held: Namespace) -> None:
    with pytest.raises(NetworkError, match=r"^sh: that is wrong$"):
        held.run(SHELL, "-c", "echo first; echo that is wrong >&2; exit 3")
    with pytest.raises(NetworkError, match=r"^sh: ended with status 3$"):
        held.run(SHELL, "-c", "exit 3")
    with pytest.raises(NetworkError, match=r"^nowhere: /nowhere: No such file or directory$"):
        held.run("/nowhere")
    assert held.run(SHELL, "-c", "echo still here") == "still here"


def test_a_program_in_the_background_is_waited_for_until_its_first_line(held: Namespace) -> None:
    pid = int(held.start(SHELL, "-c", "echo $$; exec sleep 60"))
    assert members(link_of(held.host("").namespace)) == sorted([held.pid, pid])
    held.close()
    assert within(5, lambda: ended(pid))


def test_a_program_in_the_background_that_ends_before_it_says_anything_is_an_error(held: Namespace) -> None:
    with pytest.raises(NetworkError, match="sh: ended with status 0"):
        held.start(SHELL, "-c", "exit 0")


def test_a_holder_that_does_not_answer_is_given_up(held: Namespace) -> None:
    with pytest.raises(NetworkError, match=r"did not answer within 0.1 s"):
        held.run(SHELL, "-c", "sleep 60", limit_s=0.1)
    assert ended(held.pid)


def test_a_holder_that_was_killed_is_an_error_and_not_a_hang(held: Namespace) -> None:
    os.kill(held.pid, signal.SIGKILL)
    with pytest.raises(NetworkError, match="the process that holds a network namespace is gone"):
        held.run(SHELL, "-c", "true")


def test_closing_leaves_no_process_and_may_be_done_twice(
    held: Namespace, link_that_stays: Callable[[str], str]
) -> None:
    pid = int(held.start(SHELL, "-c", "echo $$; exec sleep 60"))
    link = link_that_stays(held.host("").namespace)
    held.close()
    held.close()
    assert within(5, lambda: ended(pid))
    assert not members(link)
    assert not Path(held.host("").namespace).exists()


def test_one_that_is_too_slow_is_not_taken_for_one_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "holder.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr("harness.run.network.namespace.PROGRAMS", tmp_path)
    monkeypatch.setattr("harness.run.network.namespace.START_LIMIT_S", 0.1)
    slow = Namespace()
    with pytest.raises(TooSlow, match=r"did not answer within 0.1 s"):
        slow.wait()
    assert ended(slow.pid)


def test_a_python_that_cannot_be_started_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.network.namespace.PYTHON", ("/nowhere/python",))
    with pytest.raises(NotAvailable, match="cannot be started: No such file or directory"):
        Namespace()
