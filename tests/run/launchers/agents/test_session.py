"""How long hosts are waited for, and what is said of those who did not come."""

import contextlib
import io
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import Interrupted
from harness.protocol.messages import LauncherOptions, Request
from harness.run.launchers.agents import session as session_module
from harness.run.launchers.agents.identity import equipment_of
from harness.run.launchers.agents.session import MOST_WAITS, AgentLauncher, Session
from harness.run.launchers.base import CannotPlace, NotNow
from harness.run.process.startup import Starts, Startup
from harness.run.process.zygote import Zygote
from tests.record.examples import cell

PATIENT_S = 0.3


class Somewhere(AgentLauncher):
    """A launcher that starts nothing."""

    name = "somewhere"
    summary = "for tests"

    def available(self) -> str | None:
        return None

    def begin(self, options: LauncherOptions, hosts: int) -> Session:
        return Session(self.name, "", options, io.StringIO())

    def detail(self, session: Session) -> str | None:
        return "the queue is long"


@pytest.fixture
def session() -> Iterator[Session]:
    begun = Somewhere().begin(LauncherOptions(join_timeout_s=PATIENT_S), 2)
    yield begun
    begun.meeting.close()


def agent(name: str, gone: str | None = None, ready: bool = True) -> Any:
    """What a session looks at."""
    return SimpleNamespace(name=name, gone=gone, ready=ready, identity=SimpleNamespace(node=""), hang_up=lambda _: None)


def test_who_did_not_come_is_counted_and_what_is_known_of_them_is_said(session: Session) -> None:
    session.meeting.agents += [agent("agent 1"), agent("agent 2", "it crashed"), agent("agent 3", ready=False)]
    session.meeting.refused("a worker at 10.0.0.9 was refused: token: it is not this run's")
    with pytest.raises(CannotPlace) as caught:
        session.wait(3, lambda: None, Somewhere())
    for part in (
        "launcher 'somewhere': 1 of 3 hosts (agent 1) joined at 127.0.0.1:",
        "within 0.3 s; 2 missing",
        "the queue is long",
        "agent 3 still imports TensorFlow",
        "agent 2 is gone (it crashed)",
        "10.0.0.9 was refused",
        "; --join-timeout waits longer",
    ):
        assert part in str(caught.value)


def test_hosts_that_have_joined_may_import_for_longer_than_one_may_take_to_join(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "START_LIMIT_S", 4 * PATIENT_S)
    slow = agent("agent 2", ready=False)
    session.meeting.agents += [agent("agent 1"), slow]
    began = time.monotonic()

    def imported() -> None:
        slow.ready = time.monotonic() > began + 2 * PATIENT_S

    assert [one.name for one in session.wait(2, imported, Somewhere())] == ["agent 1", "agent 2"]
    slow.ready = False
    with pytest.raises(NotNow, match="agent 2 still imports TensorFlow"):
        session.wait(2, lambda: None, Somewhere())


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
    session.launcher_options = LauncherOptions(join_timeout_s=3600)
    with pytest.raises(CannotPlace, match="somewhere': the job has ended"):
        session.wait(1, lambda: None, launcher)


def test_hosts_that_are_missing_may_come_for_a_later_trial(session: Session) -> None:
    with pytest.raises(NotNow):
        session.wait(1, lambda: None, Somewhere())
    session.meeting.agents.append(agent("agent 1"))
    assert [one.name for one in session.wait(1, lambda: None, Somewhere())] == ["agent 1"]


class AtSecondTry(Somewhere):
    """A launcher whose first attempt to begin fails."""

    def __init__(self, error: CannotPlace) -> None:
        super().__init__()
        self.error = error
        self.tries = 0

    def begin(self, options: LauncherOptions, hosts: int) -> Session:
        self.tries += 1
        if self.tries == 1:
            raise self.error
        return super().begin(options, hosts)


@pytest.mark.parametrize(("error", "tries"), [(NotNow("the controller is busy"), 2), (CannotPlace("no srun here"), 1)])
def test_a_launcher_that_could_not_begin_is_asked_again_after_a_while_unless_it_never_can(
    monkeypatch: pytest.MonkeyPatch, error: CannotPlace, tries: int
) -> None:
    launcher = AtSecondTry(error)
    request = Request(cell=cell(), seed=0, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1)
    with contextlib.closing(Zygote()) as zygote:
        for _ in range(2):
            with pytest.raises(type(error), match=str(error)):
                launcher.session(request, zygote)
        assert launcher.tries == 1, "not at every trial"
        monkeypatch.setattr("harness.run.launchers.agents.session.AGAIN_S", 0.0)
        with contextlib.suppress(CannotPlace):
            launcher.session(request, zygote)
        assert launcher.tries == tries


@pytest.mark.parametrize("token", ["sixteen characters; and a $HOME", "it's a quoted token", "plain-token-of-16"])
def test_the_printed_command_is_read_by_a_shell_as_it_is_meant(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("HARNESS_TOKEN", token)
    session = Somewhere().begin(LauncherOptions(), 1)
    command, address = session.command(), session.meeting.address()
    session.meeting.close()
    assignment, *words = shlex.split(command)
    assert assignment == f"HARNESS_TOKEN={token}"
    assert words == ["python", "-m", "harness", "worker", "--connect", address]


def test_the_token_is_taken_from_the_users_own_code_and_later_sessions_have_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = "a token for all sessions"
    monkeypatch.setattr(Session, "_given", "")
    monkeypatch.setenv("HARNESS_TOKEN", token)
    before = Starts(Startup(), tmp_path).next_environment()[0]
    sessions = [Somewhere().begin(LauncherOptions(), 1) for _ in range(2)]
    for session in sessions:
        session.meeting.close()
    assert "HARNESS_TOKEN" not in before
    assert "HARNESS_TOKEN" not in os.environ
    assert [session.meeting.token for session in sessions] == [token] * 2


def test_hosts_are_told_of_the_interpreters_of_engines() -> None:
    session = Session("somewhere", "", LauncherOptions(engine_python="torch=/a b/python"), io.StringIO())
    told = [shlex.split(session.command())[-1], session.agent_command()[-1]]
    session.meeting.close()
    assert told == ["--engine-python=torch=/a b/python"] * 2


def test_a_host_with_another_version_of_an_engine_is_named_with_both(session: Session) -> None:
    engine = "benchmarks.own_engine:Means"
    ours = equipment_of(engine, sys.executable)
    other = ours.model_copy(update={"python": "3.10.1"})
    zygote = SimpleNamespace(engine=engine, python=sys.executable, check=lambda: None)
    elsewhere = SimpleNamespace(name="agent 1", preload=lambda _: None, equipment=lambda *_: other)
    with pytest.raises(CannotPlace, match=f"agent 1: Python is 3.10.1 there and {ours.python} here; both must have"):
        session.import_engine([elsewhere], zygote)  # type: ignore[list-item, arg-type]


def test_what_every_trial_would_say_is_said_once(session: Session) -> None:
    session.warn_once("no namespace")
    session.warn_once("no namespace")
    assert session._out is not None
    assert session._out.getvalue() == "launcher 'somewhere': no namespace\n"  # type: ignore[attr-defined]


def test_what_is_told_to_a_closed_terminal_costs_nothing() -> None:
    closed = io.StringIO()
    closed.close()
    session = Session("somewhere", "", LauncherOptions(), closed)
    session.say("anything")
    session.meeting.close()


class Preparing:
    """An agent, as a session that has data made ready looks at it; it writes in a diary what it is asked for."""

    def __init__(self, name: str, machine: str, diary: list[str], reason: str | None = None) -> None:
        self.name, self.machine, self.diary, self.reason = name, machine, diary, reason
        self.prepared: set[object] = set()
        self.limits_s: list[float] = []
        """In which it was to be through."""

    @contextlib.contextmanager
    def at_task(self, request: Request) -> Iterator[Any]:
        self.diary.append(f"{request.task} {self.name}")
        try:
            yield SimpleNamespace(result_of_task=self.result, signal=self.signal)
        finally:
            self.diary.append(f"end {self.name}")

    def result(self, begun: float, limit_s: float, check: Any) -> str | None:
        self.diary.append(f"hear {self.name}")
        self.limits_s.append(limit_s)
        return self.reason

    def signal(self, number: int) -> None:
        self.diary.append(f"{signal.Signals(number).name} {self.name}")


def prepared(session: Session, *agents: Preparing, **change: object) -> None:
    request = Request(cell=cell(**change), seed=0, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1)
    session.prepare(agents, request, lambda: None)  # type: ignore[arg-type]


def test_what_may_be_downloaded_or_written_gets_an_hour_and_a_module_that_is_only_imported_a_trials_limit(
    session: Session,
) -> None:
    agent = Preparing("a", "a", [])
    for change in ({}, {"data": "my.data:examples", "shards": 2}, {"data": "my.data:examples"}):
        prepared(session, agent, **change)
    assert agent.limits_s == [3600, 3600, 60]


def test_hosts_of_their_own_make_data_ready_side_by_side_once_the_first_has_in_case_they_share_a_disk(
    session: Session,
) -> None:
    diary: list[str] = []
    agents = [Preparing(name, name[0], diary) for name in ("a1", "b1", "c1", "c2")]
    prepared(session, *agents)
    told = [line for line in diary if "SIGKILL" not in line]
    side_by_side = ["prepare b1", "prepare c1", "hear b1", "hear c1", "end c1", "end b1"]
    assert told == ["prepare a1", "hear a1", "end a1", *side_by_side, "prepare c2", "hear c2", "end c2"]
    before = list(diary)
    prepared(session, *agents)
    assert diary == before, "each is asked once"


def test_the_first_host_without_its_data_is_named_and_the_others_go_no_further(session: Session) -> None:
    diary: list[str] = []
    agents = [
        Preparing(name, name, diary, why) for name, why in {"a": None, "b": None, "c": "full", "d": "lost"}.items()
    ]
    with pytest.raises(CannotPlace, match="is not available on c: full"):
        prepared(session, *agents)
    assert [bool(agent.prepared) for agent in agents] == [True, True, False, False]
    assert sorted(diary[-3:]) == ["end b", "end c", "end d"]
    assert diary[-6:-3] == ["SIGKILL b", "SIGKILL c", "SIGKILL d"], "all are told before any is waited for"
