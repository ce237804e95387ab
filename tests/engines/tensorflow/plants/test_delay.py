"""A delay takes the share that it states, of the steps' own time and of nothing else."""

import functools
import random
from collections.abc import Callable

import pytest

from harness.trial.delay import Delay


class Time:
    """A clock that goes on only when something takes time. `overshoot` is what a sleep takes too long."""

    def __init__(self, overshoot: Callable[[], float] = lambda: 0.0) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self._overshoot = overshoot

    def __call__(self) -> float:
        return self.now

    def take(self, seconds: float) -> None:
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        taken = seconds + self._overshoot()
        self.slept.append(taken)
        self.now += taken


def run(time: Time, share: float, windows: int, steps: int, step_s: Callable[[], float]) -> list[float]:
    """What the steps of each window took, in seconds, on devices that work behind the host's back."""
    plant = Delay(share, time.sleep, time)
    own = []
    for _ in range(windows):
        plant.window_begins()
        own.append(sum(step_s() for _ in range(steps)))
        plant.window_ends(functools.partial(time.take, own[-1]))
        time.take(5.0)  # others have the turn
    return own


@pytest.mark.parametrize("share", [0.02, 0.03, 0.05, 0.10])
def test_the_stated_share_is_slept(share: float) -> None:
    time = Time()
    own = run(time, share, windows=50, steps=6, step_s=lambda: 0.010)
    assert sum(time.slept) / sum(own) == pytest.approx(share)


def test_each_window_loses_its_own_share_when_the_machine_gets_slower_and_faster() -> None:
    generator = random.Random(1)
    time = Time()
    own = run(time, 0.03, windows=50, steps=6, step_s=lambda: 0.010 * generator.uniform(0.8, 1.2))
    assert time.slept == pytest.approx([0.03 * seconds for seconds in own])


def test_a_delay_that_takes_longer_than_it_should_does_not_change_the_mean() -> None:
    generator = random.Random(1)
    time = Time(overshoot=lambda: generator.uniform(0.0005, 0.004))
    own = run(time, 0.02, windows=500, steps=6, step_s=lambda: 0.010)
    assert sum(time.slept) / sum(own) == pytest.approx(0.02, rel=0.01)
    assert len(time.slept) < 500, "it never took longer than is owed, so nothing was carried over"


def test_the_wait_for_a_turn_is_not_the_steps_time() -> None:
    time = Time()
    run(time, 0.03, windows=20, steps=1, step_s=lambda: 0.010)
    assert max(time.slept) < 0.0004


def test_the_delay_comes_after_the_last_step_so_that_no_step_follows_a_pause() -> None:
    told: list[str] = []
    time = Time()

    def finish() -> None:
        time.take(0.1)
        told.append("steps are done")

    plant = Delay(0.03, lambda _: told.append("delay"), time)
    for _ in range(2):
        plant.window_begins()
        plant.window_ends(finish)
    assert told == ["steps are done", "delay"] * 2
