"""`validate`: rounds of arms that take turns, with looks, that can be stopped and gone on with."""

from collections import Counter
from pathlib import Path

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.analysis.validation.decisions import Decided, decisions_of
from harness.analysis.validation.summary import validation_of
from harness.errors import UsageError
from harness.protocol.messages import Request
from harness.record import Run
from harness.record.manifest import RoundRecord
from harness.record.reading import load_manifest
from harness.record.trial import Plant
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.validate import FULL_ROUNDS, PLANTED_EVERY, SHARES, SLOW_DOWNS, ValidateSettings, validate
from harness.spec import Sweep
from tests.record.examples import cell
from tests.run.fakes import Play
from tests.run.validated import NOISE, ONE, WILD, ValidateBench, as_planted


def planned(rounds: int, *cells: object, **settings: object) -> list[RoundRecord]:
    ab = AbSettings(Margins(), **settings)  # type: ignore[arg-type]
    return ValidateSettings(Sweep(), cells or (ONE, cell()), ab, rounds).plan().rounds  # type: ignore[arg-type]


def plants(of: RoundRecord) -> list[tuple[str, float]]:
    return [(arm.slowed.kind, arm.slowed.share) for arm in of.arms if arm.slowed]


def names(of: RoundRecord) -> list[str]:
    return [arm.name for arm in of.arms]


def arms_of(run: Run, block: int) -> list[str]:
    return sorted(trial.side or "" for trial in run.trials if trial.block == block and trial.status == "ok")


# what is planned


def test_every_round_has_the_same_thing_twice_and_every_third_a_slow_down_against_its_placebo() -> None:
    assert [len(plants(of)) for of in planned(9, ONE)] == [1, 0, 0] * 3
    for of in planned(12):
        by_name = {arm.name: arm for arm in of.arms}
        assert len(by_name) == len(of.arms)
        same = [arm for arm in of.decisions if arm.slowed is None]
        assert same
        for arm in of.decisions:
            other = by_name[arm.against or ""]
            assert other.name != arm.name
            assert arm.plant is not None
            assert other.plant == Plant(kind=arm.plant.kind, share=0), "a slow-down is compared with its placebo"
        sides = [name for arm in same for name in (arm.against, arm.name)]
        assert len(set(sides)) == len(sides)  # no trial is in two A/A decisions


def test_two_rounds_in_a_row_of_a_cell_hold_one_placebo_so_that_they_can_be_compared_at_different_times() -> None:
    kinds = [arm.plant.kind for of in planned(24, cell()) for arm in of.arms[:1] if arm.plant]
    assert len(kinds) == 24
    assert kinds[::2] == kinds[1::2]


def test_in_every_other_round_of_a_cell_the_same_thing_comes_from_two_preloaded_processes() -> None:
    apart = [[arm.name for arm in of.arms if arm.apart] for of in planned(6, ONE)]
    assert apart == [[], ["a-apart"]] * 3
    assert all(arm.plant and not arm.plant.share for of in planned(60) for arm in of.arms if arm.apart)


def test_a_quick_round_is_one_decision_of_each_sort() -> None:
    settings = ValidateSettings(Sweep(), (ONE, cell()), AbSettings(Margins()), 2, quick=True)
    one, two = settings.plan().rounds
    assert names(one) == ["a", "a-again", "input_stall-5"]
    assert names(two) == ["a", "a-again", "slow_replica-5"]
    assert [arm.plant.share for arm in two.arms if arm.plant] == [0, 0, 0.05]


def test_rounds_go_through_the_cells_in_turn() -> None:
    assert [of.cell_id for of in planned(5)] == [ONE.cell_id, cell().cell_id, ONE.cell_id, cell().cell_id, ONE.cell_id]


def test_a_slow_replica_is_planted_only_where_there_are_others_to_wait_for_it() -> None:
    kinds = {of.cell_id: set() for of in planned(2)}
    for of in planned(2 * FULL_ROUNDS):
        kinds[of.cell_id] |= {kind for kind, _ in plants(of)}
    assert kinds == {ONE.cell_id: set(SLOW_DOWNS) - {"slow_replica"}, cell().cell_id: set(SLOW_DOWNS)}


@pytest.mark.parametrize("one", [ONE, cell()], ids=["1 replica", "2 replicas"])
def test_every_kind_is_planted_in_every_size_and_as_often(one: object) -> None:
    kinds = 2 if one == ONE else 3
    rounds = planned(PLANTED_EVERY * len(SHARES) * kinds, one)
    found = Counter(plant for of in rounds for plant in plants(of))
    assert {share for _, share in found} == {0.02, 0.03, 0.05, 0.10}
    for share in (0.02, 0.03, 0.05, 0.10):
        assert [count for (_, planted), count in found.items() if planted == share] == (
            [1 if share in (0.02, 0.10) else 2] * kinds
        )


def test_every_round_has_room_for_its_last_look_and_begins_with_the_blocks_of_its_first() -> None:
    assert [of.blocks for of in planned(3, looks=(3, 5))] == [[0, 1, 2], [5, 6, 7], [10, 11, 12]]


# what is run


def test_each_round_has_preloaded_processes_of_its_own_and_a_decision_knows_whether_its_sides_shared_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ValidateBench(tmp_path, monkeypatch, cells=[ONE], rounds=4).start()
    again = [one for one in decisions_of(run.manifest, run.trials) if one.plant is None]
    assert [one.zygotes for one in again] == [1, 2, 1, 2]
    served = [{side.zygote.number for pair in one.pairs for side in (pair.a, pair.b) if side.zygote} for one in again]
    assert [len(numbers) for numbers in served] == [1, 4, 1, 4]
    assert len(set().union(*served)) == 10
    assert [spread.zygotes for spread in validation_of(run).spreads] == [1, 2]


def test_the_arms_of_every_round_take_turns_in_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ValidateBench(tmp_path, monkeypatch)
    run = bench.start()
    for of in bench.plan.rounds:
        for block in of.blocks:
            assert arms_of(run, block) == sorted(names(of))
            here = [trial for trial in run.trials if trial.block == block]
            assert len({trial.group for trial in here}) == 1
            assert {trial.cell_id for trial in here} == {of.cell_id}
            assert {trial.side: trial.plant for trial in here} == {arm.name: arm.plant for arm in of.arms}
    assert run.manifest.status == "finished"
    assert len(run.trials) == sum(len(of.arms) * len(of.blocks) for of in bench.plan.rounds)


def test_what_is_planted_is_found_and_what_is_not_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ValidateBench(tmp_path, monkeypatch, rounds=4).start()
    decided = decisions_of(run.manifest, run.trials)
    assert {one.round for one in decided} == {0, 1, 2, 3}
    assert {one.verdicts.wall.verdict for one in decided if one.plant is None} == {"equivalent"}
    assert {one.verdicts.wall.verdict for one in decided if one.plant and one.plant.share > 0.02} == {"slower"}
    record = validation_of(run)
    assert record.complete
    assert {floor.cell for floor in record.floors} == {ONE, cell()}


def test_data_are_prepared_and_every_kind_of_plant_is_rehearsed_once_before_the_first_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ValidateBench(tmp_path, monkeypatch, rounds=4, cells=(ONE, cell(data="synthetic")))
    run = bench.start()
    spawned = bench.zygote.spawned
    assert [(request.task, request.cell.data) for request in spawned[:2]] == [
        ("prepare", "digits"),
        ("prepare", "synthetic"),
    ]
    here = [trial for trial in run.trials if trial.side != "a-apart"]
    rehearsed = spawned[2 : len(spawned) - len(here)]
    expected = {(of.cell_id, kind) for of in bench.plan.rounds for kind, _ in plants(of)}
    assert Counter((r.cell.cell_id, r.plant.kind) for r in rehearsed if r.plant) == dict.fromkeys(expected, 1)
    assert len(rehearsed) == len(expected)


def test_a_windows_steps_are_those_of_the_cell_in_every_arm_and_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paces = iter(range(3, 1000))
    bench = ValidateBench(tmp_path, monkeypatch, as_planted(kind=lambda _: Play(steps=next(paces))))
    run = bench.start()
    steps = {(trial.cell_id, trial.windows.steps_per_window) for trial in run.trials if trial.windows}
    assert len(steps) == 2


# looks


def test_a_round_goes_on_until_both_its_decisions_have_stopped_and_each_uses_its_own_blocks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet, wild = as_planted(NOISE), as_planted(WILD)

    def one_wild_arm(request: Request) -> Play:
        planted = request.plant is not None and request.plant.share == 0.03
        return (wild if planted and request.cell == cell() else quiet)(request)

    bench = ValidateBench(tmp_path, monkeypatch, one_wild_arm)
    run = bench.start()
    assert [of.blocks for of in bench.plan.rounds] == [[0, 1, 2], [5, 6, 7, 8, 9]]
    assert sorted({trial.block for trial in run.trials}) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert [list(of.stopped.values()) for of in bench.plan.rounds] == [[3, 3], [3, 5]]
    blocks = {(one.round, one.plant.share if one.plant else 0): len(one.pairs) for one in _decided(run)}
    assert blocks == {(0, 0): 3, (0, 0.03): 3, (1, 0): 3, (1, 0.03): 5}


def _decided(run: Run) -> tuple[Decided, ...]:
    return decisions_of(run.manifest, run.trials)


def test_the_looks_and_every_block_are_on_disk_and_sealed_before_its_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk: list[tuple[int, list[int]]] = []
    usual = as_planted(WILD)

    def watching(request: Request) -> Play:
        if request.task == "trial":
            read = load_manifest(bench.path)
            assert read.validation is not None
            on_disk.append((len(read.plans), [len(of.blocks) for of in read.validation.rounds]))
        return usual(request)

    bench = ValidateBench(tmp_path, monkeypatch, watching)
    bench.start()
    seen = on_disk[-len(bench.spawned()) :]
    arms = len(bench.plan.rounds[0].arms)
    assert seen[: 3 * arms] == [(2, [3, 3])] * (3 * arms)
    assert seen[3 * arms : 8 * arms] == [(3, [5, 3])] * (5 * arms)
    assert seen[8 * arms :] == [(4, [5, 5])] * (2 * arms)
    plans = bench.stored.manifest.plans
    assert [(plan.first_block, len(plan.blocks)) for plan in plans] == [(0, 3), (5, 3), (3, 2), (8, 2)]
    assert plans[0].looks is not None
    assert plans[0].looks.after == [3, 5]


def test_arms_start_in_the_order_of_the_sealed_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ValidateBench(tmp_path, monkeypatch, as_planted(WILD)).start()
    for plan in run.manifest.plans:
        for block, [group] in enumerate(plan.blocks, plan.first_block):
            here = sorted((trial for trial in run.trials if trial.block == block), key=lambda trial: trial.order)
            assert [trial.side for trial in here] == group
    assert len({tuple(group) for plan in run.manifest.plans for [group] in plan.blocks}) > 3


def test_a_device_that_one_process_at_a_time_may_hold_is_not_validated_and_nothing_is_left(tmp_path: Path) -> None:
    settings = ValidateSettings(Sweep(), (cell(device="tpu", strategy="tpu"),), AbSettings(Margins()), rounds=1)
    with pytest.raises(UsageError, match="one process at a time may hold 'tpu'"):
        validate(settings, tmp_path)
    assert not list(tmp_path.iterdir())
