"""`ab`: both sides take turns, by a plan that is sealed before it runs, whatever happens on the way."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from harness.analysis.comparison import comparison_of_ab
from harness.analysis.comparison.pairs import pairs_of
from harness.analysis.estimates.verdict import Margins
from harness.protocol.messages import Request
from harness.record import Run
from harness.record.manifest import PlanRecord
from harness.record.reading import load_manifest
from harness.run.kinds.decision import AbSettings
from tests.run.fakes import Play, Plays
from tests.run.sided import OTHER_OP, TWO, AbBench, at, dies, in_turn, lasting, steady

SPREAD = (0.012, -0.011, 0.004, -0.013, 0.009, -0.001)
"""Logs of six trials' window times that a pilot of six blocks differs by."""


def steps_of(run: Run) -> list[tuple[str | None, int]]:
    return [(t.side, t.windows.steps_per_window) for t in run.trials if t.windows]


def blocks_of(run: Run) -> list[int]:
    return sorted({trial.block for trial in run.trials})


def differences(run: Run) -> list[float]:
    return [pair.wall for pair in pairs_of(run.trials)]


def wanted(logs: Sequence[float], half_width: float) -> int:
    """⌈(t_5·s/h)²⌉, by scipy."""
    return math.ceil((stats.t.ppf(0.975, len(logs) - 1) * np.std(logs, ddof=1) / half_width) ** 2)


def caps(**changes: float) -> AbSettings:
    return AbSettings(Margins(), **{"pilot_blocks": 6, **changes})  # type: ignore[arg-type]


# turns


def test_both_sides_of_a_block_are_ready_before_either_begins_and_then_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch, settings=caps(pilot_blocks=3))
    run = bench.start()
    happened = [(who, what) for who, what in bench.diary if what.split()[0] in ("ready", "window", "done")]
    each = 2 + 2 * 2 * 5
    for begin in range(0, len(happened), each):
        block = happened[begin : begin + each]
        assert sorted(block[:2]) == [("a", "ready"), ("b", "ready")]
        for number, window in enumerate(range(2, each, 4)):
            first, second = block[window][0], block[window + 2][0]
            assert sorted((first, second)) == ["a", "b"]
            assert block[window : window + 4] == [
                (who, f"{what} {number}") for who in (first, second) for what in ("window", "done")
            ]
    assert len(happened) == 3 * each
    assert [len({t.group for t in run.trials if t.block == block}) for block in range(3)] == [1, 1, 1]
    assert len({trial.group for trial in run.trials}) == 3
    assert {trial.interleaving for trial in run.trials} == {"turns"}


def test_the_sides_start_in_the_order_of_the_sealed_plan_which_follows_from_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        bench = AbBench(tmp_path / name, monkeypatch, b=lasting(SPREAD), sweep={"seed": seed})
        run = bench.start()
        planned = [side for plan in run.manifest.plans for block in plan.blocks for group in block for side in group]
        assert len(run.manifest.plans) == 2
        assert bench.spawned() == planned
        by_order = sorted(run.trials, key=lambda trial: (trial.block, trial.order))
        assert [trial.side for trial in by_order] == planned
        started.append(planned)
    assert started[0] == started[1] != started[2]
    firsts = started[0][::2]
    assert 1 < firsts.count("a") < len(firsts) - 1


def test_a_record_says_which_side_it_is_of_and_the_run_what_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    margins = Margins(0.02, 0.05, "the command line")
    settings = AbSettings(margins, pilot_blocks=2, max_blocks=9, half_width=0.015, time_s=900)
    run = AbBench(tmp_path, monkeypatch, cells=(TWO, OTHER_OP), settings=settings).start()
    assert {(trial.side, trial.cell) for trial in run.trials} == {("a", TWO), ("b", OTHER_OP)}
    assert run.manifest.status == "finished"
    assert run.manifest.command == ["harness", "ab"]
    kept = run.manifest.comparison
    assert kept is not None
    assert (kept.delta, kept.epsilon, kept.margins_source) == (0.02, 0.05, "the command line")
    assert (kept.half_width, kept.max_blocks, kept.time_s) == (0.015, 9, 900)
    assert [(side.name, side.cell_id) for side in kept.sides] == [("a", TWO.cell_id), ("b", OTHER_OP.cell_id)]
    assert kept.sides[0].versions["tensorflow"] == "2.21.0"


# steps


def paced(steps: int) -> Play:
    """A trial whose pilot chooses so many steps a window; each takes 25 ms."""
    return Play(steps=steps, seconds=lambda _: 0.025 * steps)


@pytest.mark.parametrize(("a", "b", "expected"), [(4, 6, (6, 6)), (4, 8, (8, 8)), (4, 9, (4, 9)), (9, 4, (9, 4))])
def test_windows_have_the_same_number_of_steps_unless_the_pilots_are_far_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, a: int, b: int, expected: tuple[int, int]
) -> None:
    plays = [lasting([0.0], steps=steps) for steps in (a, b)]
    run = AbBench(tmp_path, monkeypatch, *plays, cells=(TWO, OTHER_OP), settings=caps(pilot_blocks=2)).start()
    assert set(steps_of(run)) == {("a", expected[0]), ("b", expected[1])}


def test_the_steps_of_the_first_block_hold_for_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    growing = [in_turn(lambda number, first=first: paced(first + 5 * number)) for first in (4, 6)]
    run = AbBench(tmp_path, monkeypatch, *growing, cells=(TWO, OTHER_OP)).start()
    assert len(run.trials) == 12
    assert {steps for _, steps in steps_of(run)} == {6}


# stages


def test_a_pilot_without_spread_needs_no_second_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = AbBench(tmp_path, monkeypatch, b=lasting([0.05])).start()
    assert differences(run) == pytest.approx([-0.05] * 6)
    assert [plan.stage for plan in run.manifest.plans] == [1]
    assert comparison_of_ab(run).verdict == "slower"


@pytest.mark.parametrize("mean", [0.0, 0.3, -0.05])
def test_the_second_stage_follows_from_the_spread_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean: float
) -> None:
    logs = [value + mean for value in SPREAD]
    half_width = 0.008
    planned = wanted(SPREAD, half_width)
    assert 6 < planned < 20
    settings = caps(half_width=half_width, max_blocks=20)
    run = AbBench(tmp_path, monkeypatch, b=lasting(logs), settings=settings).start()
    assert differences(run)[:6] == pytest.approx([-value for value in logs])
    assert blocks_of(run) == list(range(planned))
    assert [len(plan.blocks) for plan in run.manifest.plans] == [6, planned - 6]


def test_a_wider_spread_wants_more_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = [1.3 * value for value in SPREAD]
    run = AbBench(tmp_path, monkeypatch, b=lasting(wide), settings=caps(half_width=0.008, max_blocks=50)).start()
    assert len(pairs_of(run.trials)) == wanted(wide, 0.008) > wanted(SPREAD, 0.008)


def test_the_second_stage_is_on_disk_and_sealed_before_its_first_trial_is_spawned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans_when_spawned = []
    usual = lasting(SPREAD)

    def watching(request: Request) -> Play:
        if request.task == "trial":
            plans_when_spawned.append(load_manifest(bench.path).plans)
        return usual(request)

    bench = AbBench(tmp_path, monkeypatch, b=watching)
    run = bench.start()
    one, two = run.manifest.plans
    assert [len(plans) for plans in plans_when_spawned] == [1] * 6 + [2] * len(two.blocks)
    assert plans_when_spawned[6] == [one, two]
    assert (two.stage, two.first_block) == (2, 6)
    for plan in (one, two):
        assert PlanRecord.sealed(plan.seed, plan.stage, plan.blocks, plan.first_block) == plan
    assert one.sha256 != two.sha256


def test_no_more_blocks_are_measured_than_the_cap_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wild = lasting([10 * value for value in SPREAD])
    run = AbBench(tmp_path, monkeypatch, b=wild, settings=caps(pilot_blocks=4, max_blocks=7)).start()
    assert blocks_of(run) == list(range(7))
    assert comparison_of_ab(run).verdict == "undecided"


def test_blocks_that_gave_no_pair_are_made_up_for_within_the_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [*SPREAD, *SPREAD]
    run = AbBench(tmp_path, monkeypatch, b=at([3], dies(), lasting(logs)), settings=caps(half_width=0.009)).start()
    kept = [value for index, value in enumerate(SPREAD) if index != 3]
    planned = min(wanted(kept, 0.009), 11)
    assert len(pairs_of(run.trials)) == planned > 5
    assert len(run.manifest.plans[1].blocks) == planned - 5


class Ticking:
    """A clock that a trial's start moves by five seconds, so that a block takes ten."""

    def __init__(self, bench_patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        bench_patch.setattr("harness.run.kinds.ab.time", SimpleNamespace(monotonic=lambda: self.now))

    def plays(self, logs: Sequence[float]) -> Plays:
        def make(number: int) -> Play:
            self.now += 5.0
            return steady(logs[number % len(logs)])

        return in_turn(make)


@pytest.mark.parametrize(("time_s", "measured"), [(1, 2), (20, 2), (25, 3), (35, 4), (60, 6), (69, 6), (85, 8)])
def test_no_block_begins_once_the_time_is_over_but_two_always_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_s: float, measured: int
) -> None:
    clock = Ticking(monkeypatch)
    wild = [10 * value for value in SPREAD]
    bench = AbBench(tmp_path, monkeypatch, clock.plays([0.0]), clock.plays(wild), settings=caps(time_s=time_s))
    run = bench.start()
    assert blocks_of(run) == list(range(measured))
    assert run.manifest.status == "finished"
    # what is planned for the second stage is what there is time for
    assert sum(len(plan.blocks) for plan in run.manifest.plans) == max(6, measured)
