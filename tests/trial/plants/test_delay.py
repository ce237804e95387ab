"""A delay takes the share that it states, of the steps' own time and of nothing else."""

import itertools
import random
from collections.abc import Callable

import pytest

from harness.trial.plants._delay import Delay


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


class Loss:
    """A loss that arrives when the devices have done what is `queued`."""

    def __init__(self, time: Time, queued: float) -> None:
        self._time, self._queued = time, queued

    def __float__(self) -> float:
        self._time.take(self._queued)
        return 1.0


def run(
    time: Time, share: float, windows: int, steps: int, step_s: Callable[[], float], every_step: bool = True
) -> tuple[float, list[int]]:
    """Seconds of the steps themselves, and how often a stall came at each place in the window."""
    plant = Delay(share, time.sleep, every_step, time)
    batches = plant.batches(itertools.count())
    own, places = 0.0, [0] * steps
    for _ in range(windows):
        plant.window_begins()
        queued = 0.0
        for place in range(steps):
            before = len(time.slept)
            next(batches)
            places[place] += len(time.slept) > before
            taken = step_s()
            own += taken
            if every_step:
                time.take(taken)
            else:
                queued += taken
        plant.window_ends(Loss(time, queued))
        time.take(5.0)  # others have the turn
    return own, places


@pytest.mark.parametrize("share", [0.02, 0.03, 0.05, 0.10])
def test_the_stated_share_is_slept(share: float) -> None:
    time = Time()
    own, _ = run(time, share, windows=50, steps=6, step_s=lambda: 0.010)
    assert sum(time.slept) / own == pytest.approx(share, rel=0.01)


def test_the_share_holds_when_the_machine_gets_slower_and_faster() -> None:
    generator = random.Random(1)
    time = Time()
    own, _ = run(time, 0.03, windows=50, steps=6, step_s=lambda: 0.010 * generator.uniform(0.8, 1.2))
    assert sum(time.slept) / own == pytest.approx(0.03, rel=0.01)


def test_a_delay_that_takes_longer_than_it_should_does_not_change_the_mean() -> None:
    generator = random.Random(1)
    time = Time(overshoot=lambda: generator.uniform(0.00005, 0.0004))
    own, places = run(time, 0.02, windows=50, steps=6, step_s=lambda: 0.010)
    assert sum(time.slept) / own == pytest.approx(0.02, rel=0.01)
    assert sum(places) < 300, "it never took longer than is owed, so nothing was carried over"


def test_the_wait_for_a_turn_is_not_the_steps_time() -> None:
    time = Time()
    run(time, 0.03, windows=20, steps=1, step_s=lambda: 0.010)
    assert max(time.slept) < 0.0004


def test_on_processors_every_step_is_delayed() -> None:
    _, places = run(Time(), 0.03, windows=10, steps=4, step_s=lambda: 0.010)
    assert places == [9, 10, 10, 10]


def test_on_accelerators_a_window_is_delayed_once_before_its_first_step_for_all_of_them() -> None:
    time = Time()
    own, places = run(time, 0.03, windows=50, steps=4, step_s=lambda: 0.010, every_step=False)
    assert places == [49, 0, 0, 0]
    assert sum(time.slept) / own == pytest.approx(0.03 * 49 / 50)


def test_batches_pass_in_order_and_end_where_they_end() -> None:
    assert list(Delay(0.03, lambda _: None).batches(iter([1, 2, 3]))) == [1, 2, 3]
