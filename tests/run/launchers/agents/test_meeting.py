"""Who knocks at the door of a run costs it neither memory, nor lines without end, nor the door itself."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.run.launchers.agents.meeting import MOST_REFUSALS, Meeting
from tests.run.launchers.agents.conftest import TOKEN, comes_true


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def meeting(told: list[str]) -> Iterator[Meeting]:
    with contextlib.closing(Meeting("", TOKEN, told.append)) as opened:
        yield opened


def knock(meeting: Meeting) -> None:
    """Come as no worker does."""
    with socket.create_connection((meeting.host, meeting.port)) as rude:
        rude.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(OSError):
            while rude.recv(1 << 16):
                pass


def test_what_is_refused_over_and_over_is_told_with_its_count_now_and_then(meeting: Meeting, told: list[str]) -> None:
    text = "a worker at 127.0.0.1 was refused: it said no hello"
    for _ in range(1234):
        meeting.refused(text)
    assert told == [text, f"{text} (10 times)", f"{text} (100 times)", f"{text} (1,000 times)"]
    assert meeting.refusals == [text]


def test_of_refusals_the_last_are_kept(meeting: Meeting) -> None:
    for number in range(MOST_REFUSALS + 10):
        meeting.refused(f"number {number}")
    meeting.refused("number 20")
    assert len(meeting.refusals) == MOST_REFUSALS
    assert meeting.refusals[-2:] == [f"number {MOST_REFUSALS + 9}", "number 20"]


def test_a_system_without_a_thread_to_spare_lets_the_next_in(
    meeting: Meeting, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, failed = threading.Thread.start, ["can't start new thread"] * 2

    def refusing_first(thread: threading.Thread) -> Any:
        if failed:
            raise RuntimeError(failed.pop())
        return start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing_first)
    for _ in range(2):
        knock(meeting)
    knock(meeting)
    assert comes_true(lambda: any("was refused" in text for text in told))
    assert [text for text in told if "for now" in text] == ["no worker can join for now: can't start new thread"]
    assert comes_true(lambda: meeting._door == [])
