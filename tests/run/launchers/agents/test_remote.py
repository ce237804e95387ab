"""The parent's end of an agent hears on, whatever a process says and whether anybody reads it."""

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.run.launchers.agents.identity import own_identity
from harness.run.launchers.agents.messages import News
from harness.run.launchers.agents.remote import Agent, RemoteChild
from harness.run.launchers.agents.wire import LONGEST_BYTES, Wire
from harness.run.launchers.agents.worker import WorkerSession, WorkerSettings, _serve
from harness.run.process.zygote import ZygoteError
from tests.run.launchers.agents.conftest import request

LARGE = "x" * 4_000_000
"""More than a socket holds that nobody reads."""


@pytest.fixture
def wires() -> Iterator[tuple[Wire, Wire]]:
    """The parent's end, and the agent's."""
    with socket.create_server(("127.0.0.1", 0)) as door, socket.create_connection(door.getsockname()) as there:
        here, _ = door.accept()
        with here:
            yield Wire(here), Wire(there)


@pytest.fixture
def child(wires: tuple[Wire, Wire]) -> Iterator[RemoteChild]:
    ours = wires[0]
    ours.longest = LONGEST_BYTES
    agent = Agent(ours, own_identity(""), "127.0.0.1", 1, lambda _: None)
    hears = threading.Thread(target=agent.listen, daemon=True)
    hears.start()
    yield agent.spawn(request(0))
    agent.hang_up("the test is over")


def ended(child: RemoteChild, status: int) -> bool:
    """Whether the parent knows in time that the process ended so, and waits for it without reading what it said."""
    found: list[int | None] = []
    waits = threading.Thread(target=lambda: found.append(child.wait(10)), daemon=True)
    waits.start()
    waits.join(20)
    return found == [status]


def test_an_outcome_that_nobody_reads_yet_keeps_no_news_from_who_waits_for_them(
    child: RemoteChild, wires: tuple[Wire, Wire]
) -> None:
    for news in (
        News(of="line", number=0, text=LARGE),
        News(of="closed", number=0),
        News(of="exited", number=0, status=3),
    ):
        wires[1].send(news)
    assert ended(child, 3)
    assert child.channel.holds_line
    assert child.channel.receive_line(1) == LARGE
    with pytest.raises(EOFError):
        child.channel.receive_line(1)


def test_thousands_of_lines_that_nobody_reads_yet_arrive_whole_and_in_order(
    child: RemoteChild, wires: tuple[Wire, Wire]
) -> None:
    for number in range(5000):
        wires[1].send(News(of="line", number=0, text=str(number)))
    wires[1].send(News(of="exited", number=0, status=0))
    assert ended(child, 0)
    assert [child.channel.receive_line(1) for _ in range(5000)] == [str(number) for number in range(5000)]
    assert child.channel.receive_line(0.0) is None


@pytest.mark.parametrize("there", [True, False])
def test_whether_memory_ran_out_is_what_the_host_says_on_which_the_process_was(
    child: RemoteChild, wires: tuple[Wire, Wire], there: bool
) -> None:
    asked: Any = None
    process: Any = SimpleNamespace(status=-9, out_of_memory=there)
    session = WorkerSession(wires[1], WorkerSettings("", 0, ""), asked)
    session.close()
    session._zygotes, session._processes = {}, {0: process}
    session._tell_ends()
    assert ended(child, -9)
    assert child.out_of_memory == there


def test_an_agent_without_a_place_for_temporary_files_tells_the_run_so(
    child: RemoteChild, wires: tuple[Wire, Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(**_: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    asked: Any = None
    monkeypatch.setattr("harness.run.process.scratch.tempfile.TemporaryDirectory", nowhere)
    with pytest.raises(ZygoteError):
        _serve(wires[1], WorkerSettings("", 0, ""), asked, lambda _: None)
    child.agent.wait_for(lambda: False, 10)
    assert child.agent.gone == (
        "TMPDIR: no folder for temporary files can be made: No usable temporary directory found"
    )
