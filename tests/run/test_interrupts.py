"""Ctrl-C: the first asks, a second insists, and afterwards everything is as before."""

import os
import signal
from collections.abc import Iterator

import pytest

from harness.errors import Interrupted
from harness.run import interrupts as module
from harness.run.interrupts import SAME_S, Interrupts, Raised

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time that a signal comes at; each of them is as in a process that nobody has told to ignore any."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    before = {number: signal.signal(number, signal.default_int_handler) for number in STOPPING}
    yield now
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_without_ctrl_c_nothing_happens() -> None:
    with Interrupts() as interrupts:
        interrupts.check()


@pytest.mark.parametrize("number", STOPPING)
def test_the_first_signal_is_only_noted(number: int) -> None:
    with Interrupts() as interrupts:
        send(number)
        with pytest.raises(Interrupted):
            interrupts.check()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_ctrl_c_interrupts_at_once(number: int, clock: list[float]) -> None:
    with Interrupts():
        send(number)
        clock[0] += SAME_S + 0.01
        with pytest.raises(KeyboardInterrupt):
            send(number)


def test_a_signal_that_is_passed_on_twice_is_one_request() -> None:
    """`timeout` sends it to the process and to its group."""
    with Interrupts() as interrupts:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert interrupts.asked


def test_a_terminal_that_is_lost_asks_however_often_it_is_told(clock: list[float]) -> None:
    """A shell tells its jobs, and the kernel does when the shell has ended; after SIGTERM some tell that, too."""
    with Interrupts() as interrupts:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGHUP):
            send(number)
            clock[0] += 1.0
        assert interrupts.asked


@pytest.mark.parametrize("kind", [Interrupts, Raised])
def test_a_lost_terminal_is_ignored_where_nohup_has_it_ignored(kind: type[Interrupts]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with kind() as interrupts:
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        send(signal.SIGHUP)
        assert not interrupts.asked


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in STOPPING]
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in STOPPING] == before


@pytest.mark.parametrize("number", STOPPING)
def test_what_looks_at_no_flag_is_interrupted_by_the_first_signal(number: int) -> None:
    with Raised(), pytest.raises(KeyboardInterrupt):
        send(number)


def test_a_request_that_was_heard_within_is_not_a_new_one_outside(clock: list[float]) -> None:
    with Raised() as outer:
        with Interrupts():
            send(signal.SIGHUP)
        clock[0] += 1.0
        send(signal.SIGHUP)
        assert outer.asked
        with pytest.raises(KeyboardInterrupt):  # while it ends in order a person insists
            send(signal.SIGINT)
