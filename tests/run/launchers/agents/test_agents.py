"""Real agents: they fork, pass on, report how processes ended, and leave nothing when anybody is killed."""

import contextlib
import errno
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.environment import facts
from harness.protocol.messages import Report
from harness.run.launchers.agents.handshake import WrongToken, admit
from harness.run.launchers.agents.identity import own_identity
from harness.run.launchers.agents.meeting import LOOPBACK, MOST_AT_THE_DOOR, ListenError, Meeting
from harness.run.launchers.agents.remote import Agent, NoAnswer, RemoteChild
from harness.run.launchers.agents.wire import KEEPALIVE, Wire
from harness.run.launchers.agents.worker import RETRY_S
from harness.run.network import EmulatedNetwork
from harness.spec.address import joined as address_of
from harness.spec.network import Network
from tests.run.launchers.agents.conftest import TOKEN, Process, Start, comes_true, joined, request
from tests.run.process.zygotes import HANGS

GONE_WITHIN_S = 60.0
"""On an idle machine it takes a second or two, beside ten-fold load ten times as long."""
NOTICED_WITHIN_S = KEEPALIVE["TCP_USER_TIMEOUT"] / 1000
"""After a link was cut; what ends then has as long as after any other end. Without keepalive it would be hours."""


def lines_of(child: RemoteChild) -> list[Report]:
    """All that a process says until its channel is closed."""
    found = []
    while True:
        try:
            line = child.channel.receive_line(20)
        except EOFError:
            return found
        assert line is not None
        found.append(Report.model_validate_json(line))


def test_a_process_elsewhere_is_heard_and_its_end_is_known(agent: Agent) -> None:
    child = agent.spawn(request(0))
    said = lines_of(child)
    assert said[0].phase == "build"
    assert said[-1].outcome is not None
    assert said[-1].outcome.status == "ok"
    assert child.wait() == 0
    child.release()


def test_one_that_raises_leaves_its_traceback_and_its_status(agent: Agent) -> None:
    child = agent.spawn(request(1))
    lines_of(child)
    assert child.wait() == 1
    assert "so be it" in child.stderr_tail()


def test_one_that_a_signal_ended_says_which(agent: Agent) -> None:
    child = agent.spawn(request(signal.SIGSEGV))
    assert child.wait() == -signal.SIGSEGV


def test_several_at_once_are_kept_apart(agent: Agent) -> None:
    hanging, raising, well = (agent.spawn(request(seed)) for seed in (HANGS, 1, 0))
    assert well.wait() == 0
    assert raising.wait() == 1
    assert hanging.status is None
    hanging.kill()
    assert hanging.status == -signal.SIGKILL


def test_ports_are_held_until_they_are_given_back(agent: Agent) -> None:
    ports = agent.hold(3)
    assert len(set(ports)) == 3
    assert not any(can_bind(port) for port in ports)
    agent.free(ports)
    assert comes_true(lambda: all(can_bind(port) for port in ports))


def test_ports_in_a_row_are_had_whole_or_not_at_all(agent: Agent) -> None:
    base = next(port for port in range(21000, 30000, 7) if all(can_bind(port + offset) for offset in range(3)))
    with socket.create_server((LOOPBACK, base + 1)):
        assert agent.hold(3, base) == []
        assert can_bind(base)
    assert agent.hold(3, base) == [base, base + 1, base + 2]


def test_an_agent_that_does_not_answer_is_not_taken_for_one_without_ports_and_keeps_none(
    worker: Process, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    free = agent.free
    monkeypatch.setattr(agent, "free", lambda ports: (taken.extend(ports), free(ports)))
    monkeypatch.setattr("harness.run.launchers.agents.remote.ANSWER_LIMIT_S", 0.2)
    monkeypatch.setattr(Agent.question, "__defaults__", (0.2,))
    worker.send_signal(signal.SIGSTOP)
    with pytest.raises(NoAnswer, match=rf"{re.escape(agent.name)} did not take ports within 0.2 s"):
        agent.hold(2)
    worker.send_signal(signal.SIGCONT)
    assert comes_true(lambda: len(taken) == 2), "what it takes too late"
    assert comes_true(lambda: all(can_bind(port) for port in taken)), "is given back"


def test_ports_of_an_agent_that_is_gone_are_no_answer(worker: Process, agent: Agent) -> None:
    worker.kill()
    assert comes_true(lambda: agent.gone is not None)
    with pytest.raises(NoAnswer, match="is gone"):
        agent.hold(1)


def test_when_the_preloaded_process_of_an_agent_dies_both_sides_are_told_why(
    worker: Process, agent: Agent, told: list[str]
) -> None:
    child = agent.spawn(request(HANGS))
    assert child.channel.receive_line(20) is not None
    [zygote] = psutil.Process(worker.pid).children()
    zygote.kill()
    out, error = worker.communicate(timeout=30)
    reason = "the preloaded process on this host is gone"
    assert (worker.returncode, error) == (4, f"harness: {reason}\n")
    assert "is over" not in out
    assert comes_true(lambda: agent.gone == reason)
    assert any(reason in text for text in told)


def test_nobody_who_reads_what_it_says_costs_a_sweep_its_host(meeting: Meeting, worker: Process) -> None:
    assert worker.stdout is not None
    assert worker.stdout.readline().startswith("joined")
    worker.stdout.close()
    [agent] = joined(meeting, 1)
    child = agent.spawn(request(0))
    assert child.wait() == 0
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(GONE_WITHIN_S) == 0
    assert worker.stderr is not None
    assert worker.stderr.read() == ""


def can_bind(port: int) -> bool:
    """Whether another program could take the port."""
    with socket.socket() as other:
        try:
            other.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def test_an_agent_says_what_its_host_is(agent: Agent) -> None:
    here = facts()
    assert agent.host == socket.gethostname()
    for name in (
        "machine.id",
        "cpu.model",
        "cpu.usable_cores",
        "memory.total_bytes",
        "python.version",
        "package.keras",
    ):
        assert agent.facts[name] == here[name]
    assert agent.facts.keys() >= here.keys()


def test_two_machines_of_one_name_are_told_apart_and_two_agents_on_one_machine_are_not(
    meeting: Meeting, agent: Agent, start: Start
) -> None:
    agent.facts["machine.id"] = "of another machine"
    for count in (2, 3):
        start("--connect", meeting.address(), "--address", "localhost")
        joined(meeting, count)
    name = socket.gethostname()
    assert [agent.host for agent in meeting.agents] == [name, f"{name} (localhost)", f"{name} (localhost)"]


def test_an_agent_that_is_killed_is_told_of_and_its_processes_end(
    meeting: Meeting, worker: Process, agent: Agent, told: list[str]
) -> None:
    child = agent.spawn(request(HANGS))
    assert comes_true(lambda: bool(select.select([child.channel.connection], [], [], 0)[0])), "it has been forked"
    children = psutil.Process(worker.pid).children(recursive=True)
    worker.kill()
    assert [report.phase for report in lines_of(child)] == ["build"]
    assert child.lost
    assert agent.name in child.gone
    assert comes_true(lambda: not any(alive(child) for child in children), GONE_WITHIN_S)
    assert meeting.living() == []
    assert comes_true(lambda: any(f"{agent.name} is gone" in text for text in told))


def alive(process: psutil.Process) -> bool:
    """Whether it runs; one that nobody has reaped yet has ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


PARENT = """
import sys, time
sys.path.insert(0, {root!r})
from harness.run.launchers.agents.meeting import Meeting
from tests.run.launchers.agents.conftest import TOKEN, request
meeting = Meeting({listen!r}, TOKEN, lambda text: None)
print(meeting.address(), flush=True)
while not meeting.living():
    time.sleep(0.02)
child = meeting.living()[0].spawn(request(100))
child.channel.receive_line()
print("forked", flush=True)
agent = meeting.living()[0]
while agent.gone is None:
    time.sleep(0.02)
print("gone:", agent.gone, flush=True)
"""


def test_when_the_sweep_is_killed_the_agent_and_what_it_forked_end(start: Start) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(root=str(Path.cwd()), listen="")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    worker = start("--connect", parent.stdout.readline().strip())
    assert parent.stdout.readline() == "forked\n"
    family = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]
    assert len(family) >= 3
    parent.kill()
    parent.communicate()
    assert comes_true(lambda: not any(alive(member) for member in family), GONE_WITHIN_S)
    out, error = worker.communicate()
    assert worker.returncode == 0
    assert out.splitlines()[-1].startswith("the run at ")
    assert error == ""


@pytest.mark.usefixtures("emulation")
def test_when_the_link_between_them_is_cut_both_sides_notice_though_nobody_says_a_word(start: Start) -> None:
    with EmulatedNetwork(Network(), hosts=2) as network:
        there, here = network.hosts
        code = PARENT.format(root=str(Path.cwd()), listen=here.address)
        enter = ["nsenter", f"--net={here.namespace}", "--"]
        parent = subprocess.Popen([*enter, sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert parent.stdout is not None
        worker = start("--connect", parent.stdout.readline().strip(), before=["nsenter", f"--net={there.namespace}"])
        assert parent.stdout.readline() == "forked\n"
        family = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]
        network.cut(0)
        ended = comes_true(lambda: not any(alive(member) for member in family), NOTICED_WITHIN_S + GONE_WITHIN_S)
        assert ended, [(member.status(), member.cmdline()) for member in family if alive(member)]
        assert parent.stdout.readline().startswith("gone: ")
        parent.kill()
        parent.communicate()


def test_one_that_is_to_stay_serves_the_next_sweep_too(start: Start) -> None:
    first = Meeting("", TOKEN, lambda _: None)
    port = first.port
    worker = start("--connect", first.address(), "--stay")
    joined(first, 1)
    first.close()
    again = listening_again(port)
    assert len(joined(again, 1)) == 1
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(GONE_WITHIN_S) == 0
    again.close()


def listening_again(port: int) -> Meeting:
    """A meeting where another has just been."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while True:
        try:
            return Meeting(address_of(LOOPBACK, port), TOKEN, lambda _: None)
        except ListenError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_frozen_agent_is_given_up_when_it_cannot_end_a_process(
    worker: Process, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = agent.spawn(request(HANGS))
    assert child.channel.receive_line(20) is not None
    worker.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(RemoteChild.wait, "__defaults__", (0.3,))
    child.kill()
    assert agent.gone is not None
    assert child.lost


def test_a_worker_with_a_wrong_token_ends_with_the_reason_and_the_sweep_has_it_too(
    meeting: Meeting, start: Start
) -> None:
    worker = start("--connect", meeting.address(), token="quite another token")
    _, error = worker.communicate(timeout=30)
    assert worker.returncode == 2
    assert error == f"harness: {meeting.address()}: token: it is not this run's\n"
    assert comes_true(lambda: bool(meeting.refusals))
    assert meeting.refusals == ["a worker at 127.0.0.1 was refused: token: it is not this run's"]


def test_a_worker_that_finds_nobody_says_so_within_its_time(start: Start) -> None:
    with socket.socket() as deaf:
        deaf.bind((LOOPBACK, 0))
        there = address_of(LOOPBACK, deaf.getsockname()[1])
        worker = start("--connect", there, "--wait", "0.2")
        _, error = worker.communicate(timeout=30)
    assert worker.returncode == 4
    assert f"no sweep answers at {there} (Connection refused); waited 0.2 s" in error


def test_one_that_stays_says_once_why_it_does_not_come_through(start: Start) -> None:
    with socket.socket() as deaf:
        deaf.bind((LOOPBACK, 0))
        there = address_of(LOOPBACK, deaf.getsockname()[1])
        worker = start("--connect", there, "--stay")
        assert worker.stdout is not None
        assert worker.stdout.readline() == f"no sweep answers at {there} (Connection refused); tries on\n"
        time.sleep(3 * RETRY_S)
        worker.send_signal(signal.SIGTERM)
        out, error = worker.communicate(timeout=30)
    assert (worker.returncode, out, error) == (0, "", "")


def test_a_worker_that_is_asked_to_end_does_so_in_order(meeting: Meeting, worker: Process) -> None:
    joined(meeting, 1)
    worker.send_signal(signal.SIGINT)
    _, error = worker.communicate(timeout=30)
    assert (worker.returncode, error) == (0, "")
    assert comes_true(lambda: meeting.living() == [])


def test_a_worker_that_is_not_heard_tries_on_within_its_time_and_a_wrong_token_is_bad_usage_then_too(
    start: Start,
) -> None:
    with socket.create_server((LOOPBACK, 0)) as busy:
        there = address_of(LOOPBACK, busy.getsockname()[1])
        worker = start("--connect", there, "--wait", "60")
        for _ in range(2):
            busy.accept()[0].close()
        with contextlib.closing(Wire(busy.accept()[0])) as wire, pytest.raises(WrongToken):
            admit(wire, "quite another token", own_identity())
        _, error = worker.communicate(timeout=30)
    assert (worker.returncode, error) == (2, f"harness: {there}: token: it is not this run's\n")


def test_rubbish_at_the_door_keeps_nobody_out(meeting: Meeting, start: Start) -> None:
    host, port = meeting.host, meeting.port
    silent = [socket.create_connection((host, port)) for _ in range(MOST_AT_THE_DOOR + 8)]
    with socket.create_connection((host, port)) as rude:
        rude.sendall(b"\x80\x04\x95 pickled\n")
        start("--connect", meeting.address())
        assert len(joined(meeting, 1)) == 1
    for connection in silent:
        connection.close()


def test_a_system_that_refuses_for_a_while_keeps_nobody_out_for_good(
    told: list[str], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [OSError(number, os.strerror(number)) for number in (errno.EMFILE, errno.EMFILE, errno.ECONNABORTED)]
    accept = socket.socket.accept

    def refusing_first(door: socket.socket) -> Any:
        if refusals:
            raise refusals.pop(0)
        return accept(door)

    monkeypatch.setattr("socket.socket.accept", refusing_first)
    with contextlib.closing(Meeting("", TOKEN, told.append)) as meeting:
        start("--connect", meeting.address())
        assert len(joined(meeting, 1)) == 1
    assert told[:2] == [f"no worker can join for now: {os.strerror(n)}" for n in (errno.EMFILE, errno.ECONNABORTED)]


def test_nothing_listens_on_other_than_loopback_unless_asked(meeting: Meeting) -> None:
    assert meeting.host == LOOPBACK
    open_to_all = Meeting("0.0.0.0", TOKEN, lambda _: None)
    assert open_to_all.host == "0.0.0.0"
    assert not open_to_all.address().startswith("0.0.0.0")
    open_to_all.close()


@pytest.mark.parametrize(
    ("listen", "reason"),
    [("127.0.0.1:{taken}", "in use; give another port, or the ad"), ("nobody.invalid", "nobody.invalid")],
)
def test_an_address_that_cannot_be_had_is_named(meeting: Meeting, listen: str, reason: str) -> None:
    with pytest.raises(ListenError, match=reason):
        Meeting(listen.format(taken=meeting.port), TOKEN, lambda _: None)
