"""Ctrl-C: the first asks, a second insists, and afterwards everything is as before."""

import os
import signal

import pytest

from harness.errors import Interrupted
from harness.run.interrupts import Interrupts


def test_without_ctrl_c_nothing_happens() -> None:
    with Interrupts() as interrupts:
        interrupts.check()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_only_noted(number: int) -> None:
    with Interrupts() as interrupts:
        os.kill(os.getpid(), number)
        with pytest.raises(Interrupted):
            interrupts.check()


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    with Interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
