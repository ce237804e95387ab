"""`ab`: both sides take turns, by a plan that is sealed before it runs, whatever happens on the way."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from harness.analysis.comparison import comparison_of_ab
from harness.analysis.comparison.pairs import pairs_of
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.verdict import Margins
from harness.protocol.messages import Request
from harness.record import Run
from harness.record.manifest import DeviceRecord, PlanRecord
from harness.record.reading import load_manifest
from harness.run.kinds.ab import planned_decision
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import sides_of
from tests.run.fakes import Play, Plays
from tests.run.sided import OTHER_OP, TWO, AbBench, at, dies, in_turn, lasting, steady

WILD = (0.12, -0.11, 0.04, -0.13, 0.09, -0.01)
"""Logs of six trials' window times that decide nothing."""
SLOWER = (0.101, 0.102, 0.1, 0.099, 0.1, 0.098)
"""Those that decide at once."""


def steps_of(run: Run) -> list[tuple[str | None, int]]:
    return [(t.side, t.windows.steps_per_window) for t in run.trials if t.windows]


def blocks_of(run: Run) -> list[int]:
    return sorted({trial.block for trial in run.trials})


def differences(run: Run) -> list[float]:
    return [pair.wall for pair in pairs_of(run.trials)]


def caps(**changes: object) -> AbSettings:
    return AbSettings(Margins(), **{"looks": (6,), **changes})  # type: ignore[arg-type]


# turns


def test_both_sides_of_a_block_are_ready_before_either_begins_and_then_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch, settings=caps(looks=(3,)))
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
        bench = AbBench(
            tmp_path / name, monkeypatch, b=lasting(WILD), sweep={"seed": seed}, settings=caps(looks=(6, 9))
        )
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


def test_the_manifest_of_two_engines_keeps_the_device_kinds_of_both() -> None:
    alone = {"strategy": ["none"], "replicas": [1]}
    sides = sides_of(alone, ["engine=jax"], ["engine=tensorflow", "device=virtual-gpu"])
    made = planned_decision(sides, AbSettings(Margins()), [])
    assert made.engines == {"jax", "tensorflow"}
    assert made.devices == {
        "virtual-cpu": DeviceRecord(on_processors=True, virtual=True),
        "virtual-gpu": DeviceRecord(virtual=True),
    }


def test_a_record_says_which_side_it_is_of_and_the_run_what_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    margins = Margins(0.02, 0.05, "the command line")
    settings = AbSettings(margins, looks=(2, 9), time_s=900)
    run = AbBench(tmp_path, monkeypatch, cells=(TWO, OTHER_OP), settings=settings).start()
    assert {(trial.side, trial.cell) for trial in run.trials} == {("a", TWO), ("b", OTHER_OP)}
    assert run.manifest.status == "finished"
    assert run.manifest.command == ["harness", "ab"]
    kept = run.manifest.comparison
    assert kept is not None
    assert (kept.delta, kept.epsilon, kept.margins_source) == (0.02, 0.05, "the command line")
    assert (kept.half_width, kept.max_blocks, kept.time_s) == (None, 9, 900)
    assert [(side.name, side.cell_id) for side in kept.sides] == [("a", TWO.cell_id), ("b", OTHER_OP.cell_id)]
    assert kept.sides[0].versions["tensorflow"] == "2.21.0"


def test_a_framework_newer_than_its_engine_was_tested_with_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.run.kinds.base.newer_words", lambda *_: "jax 9.0 is newer than 0.10.2")
    run = AbBench(tmp_path, monkeypatch, settings=caps(looks=(2,))).start()
    assert run.manifest.machine.warnings.count("jax 9.0 is newer than 0.10.2") == 1
    assert capsys.readouterr().err.count("jax 9.0 is newer") == 1


@pytest.mark.parametrize(("shared", "served"), [(True, [1, 1, 1, 1, 1, 2]), (False, [1, 1, 2, 2, 3, 4])])
def test_sides_with_a_preloaded_process_each_get_other_ones_between_looks_and_all_sides_after_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool, served: list[int]
) -> None:
    a = lasting(WILD if shared else [0.0])
    run = AbBench(tmp_path, monkeypatch, a, lasting(WILD), one_environment=shared, settings=caps(looks=(5, 6))).start()
    for side in ("a", "b"):
        numbers = [one.zygote.number for one in run.trials if one.side == side and one.zygote]
        assert [1 + sorted(set(numbers)).index(number) for number in numbers] == served


# steps


def paced(steps: int) -> Play:
    """A trial whose pilot chooses so many steps a window; each takes 25 ms."""
    return Play(steps=steps, seconds=lambda _: 0.025 * steps)


@pytest.mark.parametrize(("a", "b", "expected"), [(4, 6, (6, 6)), (4, 8, (8, 8)), (4, 9, (4, 9)), (9, 4, (9, 4))])
def test_windows_have_the_same_number_of_steps_unless_the_pilots_are_far_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, a: int, b: int, expected: tuple[int, int]
) -> None:
    plays = [lasting([0.0], steps=steps) for steps in (a, b)]
    run = AbBench(tmp_path, monkeypatch, *plays, cells=(TWO, OTHER_OP), settings=caps(looks=(2,))).start()
    assert set(steps_of(run)) == {("a", expected[0]), ("b", expected[1])}


def test_the_steps_of_the_first_block_hold_for_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    growing = [in_turn(lambda number, first=first: paced(first + 5 * number)) for first in (4, 6)]
    run = AbBench(tmp_path, monkeypatch, *growing, cells=(TWO, OTHER_OP)).start()
    assert len(run.trials) == 12
    assert {steps for _, steps in steps_of(run)} == {6}


# looks


def test_a_look_that_decides_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = AbBench(tmp_path, monkeypatch, b=lasting(SLOWER), settings=caps(looks=(5, 8, 12))).start()
    assert blocks_of(run) == list(range(5))
    assert run.manifest.status == "finished"
    comparison = comparison_of_ab(run)
    assert (comparison.verdict, comparison.blocks) == ("slower", 5)
    assert "Decided at look 1 of 3, after 5 blocks." in comparison.remarks


def test_what_is_within_epsilon_ends_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alike = [value / 1000 for value in WILD]
    run = AbBench(tmp_path, monkeypatch, b=lasting(alike), settings=caps(looks=(5, 8, 12))).start()
    assert blocks_of(run) == list(range(5))
    assert comparison_of_ab(run).verdict == "equivalent"


def test_blocks_go_on_to_the_look_that_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [0.012, 0.06, 0.03, 0.06, 0.012, 0.036, 0.036, 0.036]
    run = AbBench(tmp_path, monkeypatch, b=lasting(logs), settings=caps(looks=(5, 8, 12))).start()
    assert blocks_of(run) == list(range(8))
    comparison = comparison_of_ab(run)
    assert (comparison.verdict, comparison.blocks) == ("slower", 8)
    first_five = comparison_of_ab(replace(run, trials=[trial for trial in run.trials if trial.block < 5]))
    assert first_five.verdict == "undecided"


def test_a_run_that_nothing_decides_ends_at_the_last_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = AbBench(tmp_path, monkeypatch, b=lasting(WILD), settings=caps(looks=(4, 7))).start()
    assert blocks_of(run) == list(range(7))
    comparison = comparison_of_ab(run)
    assert comparison.verdict == "undecided"
    assert "Not decided at look 2 of 2, after 7 blocks, the last." in comparison.remarks


def test_the_looks_are_on_disk_and_sealed_before_the_first_trial_and_each_block_before_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans_when_spawned = []
    usual = lasting(WILD)

    def watching(request: Request) -> Play:
        if request.task == "trial":
            plans_when_spawned.append(load_manifest(bench.path).plans)
        return usual(request)

    bench = AbBench(tmp_path, monkeypatch, b=watching, settings=caps(looks=(5, 8)))
    run = bench.start()
    one, two = run.manifest.plans
    assert [len(plans) for plans in plans_when_spawned] == [1] * 5 + [2] * 3
    assert plans_when_spawned[0] == [one]
    assert one.looks is not None
    planned = Looks.planned((5, 8))
    assert (one.looks.after, one.looks.different, one.looks.equivalent) == (
        [5, 8],
        list(planned.different),
        list(planned.equivalent),
    )
    assert (two.first_block, two.looks) == (5, None)
    looser = one.looks.model_copy(update={"different": [0.025, 0.025]})
    with pytest.raises(ValidationError, match="sha256 does not seal this plan"):
        PlanRecord.model_validate({**one.model_dump(), "looks": looser.model_dump()})


def test_a_block_that_gave_no_pair_is_missing_from_its_look_and_not_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=at([3], dies(), lasting(SLOWER)), settings=caps(looks=(5, 8)))
    run = bench.start()
    assert blocks_of(run) == list(range(5))
    assert comparison_of_ab(run).blocks == 4


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


@pytest.mark.parametrize(("time_s", "measured"), [(1, 1), (20, 2), (25, 3), (55, 6), (79, 6), (85, 8), (115, 8)])
def test_no_block_begins_once_the_time_is_over_but_one_always_does_and_no_look_that_there_is_no_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_s: float, measured: int
) -> None:
    clock = Ticking(monkeypatch)
    settings = caps(looks=(6, 8, 12), time_s=time_s)
    bench = AbBench(tmp_path, monkeypatch, clock.plays([0.0]), clock.plays(WILD), settings=settings)
    run = bench.start()
    assert blocks_of(run) == list(range(measured))
    assert run.manifest.status == "finished"
    assert sum(len(plan.blocks) for plan in run.manifest.plans) == max(6, measured)
    comparison = comparison_of_ab(run)
    assert (comparison.verdict, comparison.blocks) == ("undecided", measured if measured > 1 else 0)
    wall = comparison.rows[0].verdicts.wall
    assert (wall.ratio is None) is (measured < 2), "one pair has no interval"
