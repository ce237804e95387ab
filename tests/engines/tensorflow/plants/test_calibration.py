"""How much work is planted follows from what the step took with and without it."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from harness.engines.tensorflow.plants import _calibration
from harness.engines.tensorflow.plants._calibration import calibrated_rate
from harness.engines.tensorflow.plants.base import Arrays, Keep
from harness.errors import HarnessError


def keep_nothing(_name: str, compute: Callable[[], Arrays]) -> Arrays:
    """A Keep for a process that is by itself."""
    return compute()


class Work:
    """Work that costs `product_s` a product in the step, and something else alone."""

    def __init__(self, fixed_s: float = 20e-6, product_s: float = 9e-6) -> None:
        self.rate, self.fixed_s, self.product_s = 1.0, fixed_s, product_s

    def set_rate(self, rate: float) -> None:
        self.rate = rate

    def cost_s(self) -> float:
        return 7e-6


class Machine:
    """Runs a step that takes `plain_s`, and the work in it, with a speed that changes from step to step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: Work, plain_s: float, speed: Callable[[], float]) -> None:
        self.now, self.work, self.plain_s, self.speed = 0.0, work, plain_s, speed
        monkeypatch.setattr(_calibration.time, "perf_counter", lambda: self.now)

    def length_s(self) -> float:
        return self.plain_s + self.work.fixed_s + self.work.rate * self.work.product_s

    def step(self) -> None:
        self.now += self.length_s() * self.speed()


def calibrate(machine: Machine, share: float, keep: Keep = keep_nothing) -> float:
    """The share by which the calibrated step is longer than the placebo's, which has the same ops and no products."""
    work: Any = machine.work
    work.set_rate(calibrated_rate("device_work", share, [work], machine.step, keep))
    return machine.length_s() / (machine.plain_s + machine.work.fixed_s) - 1


@pytest.mark.parametrize("share", [0.0, 0.02, 0.03, 0.05, 0.10])
def test_the_step_gets_longer_by_the_stated_share_than_the_placebos(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    assert calibrate(Machine(monkeypatch, Work(), 0.010, lambda: 1.0), share) == pytest.approx(share)


def off_by(monkeypatch: pytest.MonkeyPatch, seed: int) -> float:
    """By what share of itself a planted 5 % misses it on a machine with spikes."""
    generator = random.Random(seed)

    def speed() -> float:
        spike = 4.0 if generator.random() < 0.03 else 1.0
        return spike * generator.lognormvariate(0, 0.08)

    return abs(calibrate(Machine(monkeypatch, Work(), 0.010, speed), 0.05) / 0.05 - 1)


def test_a_noisy_machine_moves_it_by_no_more_than_a_tenth_and_a_plain_mean_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert max(off_by(monkeypatch, seed) for seed in range(5)) < 0.1
    monkeypatch.setattr(_calibration, "TRIM", 0.0)
    assert max(off_by(monkeypatch, seed) for seed in range(5)) > 0.1


def test_all_replicas_work_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    both: Any = [Work(), Work()]
    machine = Machine(monkeypatch, both[0], 0.010, lambda: 1.0)
    rates = []

    def step() -> None:
        rates.append({work.rate for work in both})
        machine.step()

    calibrated_rate("device_work", 0.05, both, step, keep_nothing)
    assert all(len(found) == 1 for found in rates[1:])


def test_work_that_makes_no_step_longer_is_an_error_and_not_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, Work(product_s=0.0), 0.010, lambda: 1.0)
    with pytest.raises(HarnessError, match="could not be calibrated"):
        calibrate(machine, 0.03)


def test_what_one_trial_found_serves_the_next_ones_of_the_cell_at_any_share(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Arrays] = {}

    def keep(name: str, compute: Callable[[], Arrays]) -> Arrays:
        if name not in known:
            known[name] = compute()
        return known[name]

    first = Machine(monkeypatch, Work(), 0.010, lambda: 1.0)
    assert calibrate(first, 0.03, keep) == pytest.approx(0.03)
    second = Machine(monkeypatch, Work(), 0.010, lambda: 1.0)
    assert calibrate(second, 0.10, keep) == pytest.approx(0.10)
    assert second.now == 0.0, "it took steps to find out what was known"
