"""The time left: by cells, by what they took, honest from half-way on."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from harness.record import load_run
from harness.record.manifest import RunManifest
from harness.run.progress import Progress
from harness.spec.sweep import Sweep
from tests.synthetic import make_cell, make_run

GOALS = Path(__file__).parents[2] / "benchmarks" / "goals"
SLOW, FAST = make_cell("mirrored", 2), make_cell("none")


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def goal(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """benchmarks/goals/eta.py."""
    monkeypatch.syspath_prepend(str(GOALS))
    spec = importlib.util.spec_from_file_location("eta_goal", GOALS / "eta.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("common", None)


def test_a_recorded_run_is_foretold_within_a_fifth_from_half_way_on(goal: ModuleType) -> None:
    samples, took = goal.replayed(load_run(Path("results/reference")))
    late = [(when, error) for when, error in goal.all_errors(samples, took) if 0.5 * took <= when <= 0.95 * took]
    assert len(late) > 100
    assert max(abs(error) for _, error in late) <= 0.20


def planned(**settings: int) -> RunManifest:
    """A sweep of two cells with these settings."""
    return make_run([SLOW, FAST], blocks=1)[0].model_copy(update={"sweep": Sweep(**settings)})


def set_up(eta: Progress, clock: FakeClock, seconds: float = 1.0) -> None:
    for cell in (SLOW, FAST):
        eta.phase(cell, "start")
        clock.now += seconds


def rounds(eta: Progress, clock: FakeClock, count: int) -> None:
    for number in range(count):
        eta.round(number, 10, 2)
        for cell, seconds in ((SLOW, 3.0), (FAST, 1.0)):
            clock.now += seconds
            eta.window(cell, seconds, 1)


def leave(eta: Progress, clock: FakeClock) -> None:
    _, trials = make_run([SLOW, FAST], blocks=1, faults=False)
    for cell in (SLOW, FAST):
        eta.phase(cell, "exit")
        clock.now += 0.5
        eta.ended(next(trial for trial in trials if trial.cell_id == cell.cell_id))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def eta(clock: FakeClock) -> Progress:
    """A first block of two cells is over: set-up 2 s, ten rounds of 4 s, exits 1 s."""
    found = Progress(clock)
    found.plan(planned(windows=10, max_warmup=0), [])
    found.started("run", 6, 100.0)
    found.group([SLOW, FAST], [[SLOW, FAST], [SLOW, FAST]])
    set_up(found, clock)
    rounds(found, clock, 10)
    leave(found, clock)
    return found


def test_blocks_that_are_left_cost_what_the_first_did(eta: Progress) -> None:
    eta.group([SLOW, FAST], [[SLOW, FAST]])
    assert eta.left_s() == pytest.approx(2 * 43)


def test_a_block_of_fast_cells_costs_less(eta: Progress) -> None:
    eta.group([FAST], [])
    assert eta.left_s() == pytest.approx(1 + 10 * 1 + 0.5)


def test_it_runs_down_within_a_block(eta: Progress, clock: FakeClock) -> None:
    eta.group([SLOW, FAST], [])
    set_up(eta, clock)
    assert eta.left_s() == pytest.approx(41, abs=1.01)
    rounds(eta, clock, 5)
    assert eta.left_s() == pytest.approx(21)


def test_a_machine_that_became_slower_is_believed_for_the_present_block(eta: Progress, clock: FakeClock) -> None:
    eta.group([SLOW, FAST], [])
    set_up(eta, clock)
    for number in range(5):
        eta.round(number, 10, 2)
        clock.now += 8.0
    eta.round(5, 10, 2)
    assert eta.left_s() == pytest.approx(5 * 8 + 1)


def test_rounds_of_warm_up_are_counted_from_the_beginning(clock: FakeClock) -> None:
    eta = Progress(clock)
    eta.plan(planned(windows=10, max_warmup=4), [])
    eta.started("run", 2, 100.0)
    eta.group([SLOW, FAST], [])
    set_up(eta, clock)
    for number in range(12):
        eta.round(number, 14, 2)
        clock.now += 4.0
    eta.round(12, 14, 2)
    assert eta.left_s() == pytest.approx(2 * 4, abs=0.2)


def test_a_cell_that_never_takes_a_window_costs_its_set_up_only(clock: FakeClock) -> None:
    manifest, trials = make_run([SLOW, make_cell("mirrored", 2, op="nccl")], blocks=1)
    broken = next(trial for trial in trials if trial.status == "unsupported")
    eta = Progress(clock)
    eta.plan(manifest, [])
    eta.started("run", 4, 100.0)
    eta.group([broken.cell, FAST], [])
    eta.phase(broken.cell, "start")
    clock.now += 1.0
    eta.ended(broken)
    eta.phase(FAST, "start")
    clock.now += 1.0
    eta.round(0, 10, 2)
    clock.now += 2.0
    eta.window(FAST, 2.0, 1)
    eta.group([broken.cell], [])
    assert eta.left_s() == pytest.approx(1.0, abs=0.2)


def test_a_resumed_run_knows_what_trials_took() -> None:
    clock = FakeClock()
    manifest, trials = make_run([SLOW, FAST], blocks=2, faults=False)
    fresh, resumed = Progress(clock), Progress(clock)
    for eta, earlier in ((fresh, []), (resumed, trials)):
        eta.plan(manifest, earlier)
        eta.started("run", 2, 100.0)
        eta.group([SLOW, FAST], [])
    spent = sum(sum(trial.windows.seconds) for trial in trials[:2] if trial.windows)
    fixed = sum(trial.phases.fixed_s for trial in trials[:2])
    assert resumed.left_s() == pytest.approx(spent + fixed, rel=0.3)
    assert abs(resumed.left_s() - spent - fixed) < abs(fresh.left_s() - spent - fixed)
