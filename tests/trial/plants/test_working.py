"""Planted work takes its share of what the step itself takes, also when the machine's speed drifts."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.trial.devices.base import Unsupported
from harness.trial.plants import _working
from harness.trial.plants._working import EVERY, REMEMBERED, Working
from harness.trial.plants.base import keep_nothing

FIXED_S = 30e-6


class Work:
    """Work of which no more than the time is of interest."""

    def __init__(self, _device: str) -> None:
        self.seconds = 0.0

    def set_seconds(self, seconds: float) -> None:
        self.seconds = seconds

    def cost_s(self) -> float:
        return FIXED_S


class Machine:
    """Steps that take `plain_s` themselves, and the work in them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, share: float, plain_s: float, replicas: int = 1) -> None:
        monkeypatch.setattr(_working, "TimedWork", Work)
        self.now, self.plain_s, self.fixed_s = 0.0, plain_s, FIXED_S * replicas
        devices = [f"/device:CPU:{i}" for i in range(replicas)]
        self.working = Working("device_work", share, devices, clock=lambda: self.now)
        self.batches = self.working.batches(iter(int, 1))
        self.working.calibrate(self.step, keep_nothing)

    @property
    def longer(self) -> float:
        """By what share the step is longer now than it would be with nothing planted."""
        return (self.work_s() + self.fixed_s) / self.plain_s

    def work_s(self) -> float:
        work: Any = self.working.work
        return max(one.seconds for one in work)

    def step(self) -> None:
        self.now += self.plain_s + self.fixed_s + self.work_s()

    def windows(self, number: int, steps: int = 2) -> Iterator[float]:
        for _ in range(number):
            self.now += 1.0  # others have their turns
            self.working.window_begins()
            for _ in range(steps):
                next(self.batches)
                self.step()
            self.working.window_ends(None)
            yield self.longer


@pytest.mark.parametrize("share", [0.02, 0.05, 0.10])
def test_the_first_window_has_the_stated_share_already(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    machine = Machine(monkeypatch, share, 0.01)
    assert machine.longer == pytest.approx(share)
    assert all(longer == pytest.approx(share) for longer in machine.windows(50))


def test_it_follows_a_machine_that_gets_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.05, 0.01)
    list(machine.windows(REMEMBERED))
    machine.plain_s = 0.013
    assert list(machine.windows(1)) == [pytest.approx(0.05 / 1.3)]
    *_, last = machine.windows(REMEMBERED + EVERY)
    assert last == pytest.approx(0.05)


def test_all_replicas_work_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.05, 0.01, replicas=2)
    work: Any = machine.working.work
    assert [one.seconds for one in work] == [pytest.approx(0.0005 - 2 * FIXED_S)] * 2
    assert machine.longer == pytest.approx(0.05)


def test_a_step_so_short_that_the_empty_work_is_more_than_the_share_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says = r"'device_work' of 3% of a step of 0.5 ms is less .* \(30 µs\).* batch_size"
    with pytest.raises(Unsupported, match=says):
        Machine(monkeypatch, 0.03, 0.0005)


def test_accelerators_get_a_number_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(Work):
        def set_rate(self, rate: float) -> None:
            self.rate = rate

    monkeypatch.setattr(_working, "CountedWork", Counted)
    monkeypatch.setattr(_working, "calibrated_rate", lambda *_: 12.5)
    working: Any = Working("device_work", 0.05, ["/device:GPU:0", "/device:GPU:1"])
    working.calibrate(lambda: None, keep_nothing)
    working.window_begins()
    working.window_ends(None)
    assert [one.rate for one in working.work] == [12.5, 12.5]
