"""How long hosts are waited for, and what is said of those who did not come."""

import io
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import Interrupted
from harness.run.launchers.agents.session import MOST_WAITS, AgentLauncher, Session
from harness.run.launchers.base import CannotPlace
from harness.trial.protocol import Placing

PATIENT_S = 0.3


class Somewhere(AgentLauncher):
    """A launcher that starts nothing."""

    name = "somewhere"
    summary = "for tests"

    def available(self) -> str | None:
        return None

    def begin(self, placing: Placing, hosts: int) -> Session:
        return Session(self.name, "", placing, io.StringIO())

    def detail(self, session: Session) -> str | None:
        return "the queue is long"


@pytest.fixture
def session() -> Iterator[Session]:
    begun = Somewhere().begin(Placing(join_timeout_s=PATIENT_S), 2)
    yield begun
    begun.meeting.close()


def agent(name: str, gone: str | None = None, ready: bool = True) -> Any:
    """What a session looks at."""
    return SimpleNamespace(name=name, gone=gone, ready=ready, identity=SimpleNamespace(node=""), hang_up=lambda _: None)


def test_who_did_not_come_is_counted_and_what_is_known_of_them_is_said(session: Session) -> None:
    session.meeting.agents += [agent("agent 1"), agent("agent 2", "it crashed"), agent("agent 3", ready=False)]
    session.meeting.refusals.append("a worker at 10.0.0.9 was refused: token: it is not this run's")
    with pytest.raises(CannotPlace) as caught:
        session.wait(3, lambda: None, Somewhere())
    for part in (
        "launcher 'somewhere': 1 of 3 hosts (agent 1) joined at 127.0.0.1:", "within 0.3 s; 2 missing",
        "the queue is long",
        "agent 3 still imports TensorFlow", "agent 2 is gone (it crashed)", "10.0.0.9 was refused",
    ):  # fmt: skip
        assert part in str(caught.value)


def test_once_they_are_known_to_be_missing_nobody_waits_for_them_again(session: Session) -> None:
    asked: list[None] = []
    with pytest.raises(CannotPlace):
        session.wait(1, lambda: None, Somewhere())
    with pytest.raises(CannotPlace):
        session.wait(1, lambda: asked.append(None), Somewhere())
    assert len(asked) == 1


def test_one_that_joins_and_fails_over_and_over_does_not_keep_the_sweep_waiting_for_ever(session: Session) -> None:
    over = threading.Event()

    def flap() -> None:
        while not over.wait(PATIENT_S / 4):
            session.meeting.agents.append(agent("again", "it crashed"))

    thread = threading.Thread(target=flap)
    thread.start()
    began = time.monotonic()
    try:
        with pytest.raises(CannotPlace):
            session.wait(1, lambda: None, Somewhere())
    finally:
        over.set()
        thread.join()
    assert time.monotonic() - began >= MOST_WAITS * PATIENT_S


def test_ctrl_c_ends_the_waiting(session: Session) -> None:
    def asked() -> None:
        raise Interrupted("interrupted")

    with pytest.raises(Interrupted):
        session.wait(1, asked, Somewhere())


def test_a_reason_why_nobody_will_come_ends_the_waiting(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Somewhere()
    monkeypatch.setattr(launcher, "trouble", lambda _: "the job has ended")
    session.placing = Placing(join_timeout_s=3600)
    with pytest.raises(CannotPlace, match="somewhere': the job has ended"):
        session.wait(1, lambda: None, launcher)


def test_what_is_told_to_a_closed_terminal_costs_nothing() -> None:
    closed = io.StringIO()
    closed.close()
    session = Session("somewhere", "", Placing(), closed)
    session.say("anything")
    session.meeting.close()
