"""Blocks of several arms: alive together, each pair in one group, whatever memory there is and whoever dies."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.comparison.pairs import pairs_of
from harness.errors import HarnessError, Interrupted
from harness.protocol.messages import Request, TraceRequest
from harness.record import RunStore, TrialRecord, load_run
from harness.record.trial import Plant, TraceRecord
from harness.run.interrupts import Interrupts
from harness.run.kinds.arms import ArmBlocks, start_order
from harness.run.kinds.base import Arm
from harness.run.progress import Quiet
from harness.run.request import request_for
from harness.run.turns import group as turns
from harness.spec import Sweep
from harness.spec.cell import TrainingCell
from tests.record.examples import cell, manifest, trial
from tests.run.fakes import WELL, Actor, FakeZygote, Play, Plays
from tests.run.sided import TWO, at, dies, says

FOUR = ("a", "again", "c", "d")
AGAINST_A = [("a", "again"), ("a", "c"), ("a", "d")]
TWO_PAIRS = [("a", "again"), ("c", "d")]


class Arms:
    """Arms of one cell, a fake zygote each, in a run of their own."""

    def __init__(
        self,
        folder: Path,
        plays: Mapping[str, Plays] | None = None,
        names: Sequence[str] = FOUR,
        of: TrainingCell = TWO,
    ) -> None:
        self.diary: list[tuple[str, str]] = []
        self.counting = Quiet()
        self.zygotes = {
            name: FakeZygote(folder / name, (plays or {}).get(name, lambda _: Play()), name, self.diary)
            for name in names
        }
        request = request_for(of, Sweep(window=0.01), folder)
        self.arms = [Arm(name, request, zygote, 5.0) for name, zygote in self.zygotes.items()]  # type: ignore[arg-type]
        self.store = RunStore.create(folder / "results", manifest())
        self.blocks = ArmBlocks(self.store, self.counting, windows=5, max_warmup=0, seed=1, interrupts=Interrupts())

    def run(self, block: int = 0, pairs: Sequence[tuple[str, str]] = AGAINST_A) -> list[TrialRecord]:
        with self.blocks.interrupts:
            return self.blocks.run(block, self.arms, pairs)


def groups(trials: Sequence[TrialRecord]) -> list[list[str]]:
    """The sides of each group, in the order of the groups."""
    names = dict.fromkeys(trial.group for trial in trials)
    return [sorted(trial.side or "" for trial in trials if trial.group == name) for name in names]


def test_all_arms_live_before_the_first_window_and_take_turns(tmp_path: Path) -> None:
    arms = Arms(tmp_path)
    ended = arms.run()
    ready = [place for place, (_, what) in enumerate(arms.diary) if what == "ready"]
    windows = [(who, what) for who, what in arms.diary[max(ready) :] if what.startswith("window")]
    assert len(ready) == 4
    assert [sorted(who for who, what in windows if what == f"window {n}") for n in range(5)] == [sorted(FOUR)] * 5
    assert len(windows) == 20
    assert groups(ended) == [sorted(FOUR)]
    assert load_run(arms.store.path).trials == ended


def test_on_gpus_an_arm_is_set_up_once_the_one_before_is_so_that_kernels_are_chosen_without_company(
    tmp_path: Path,
) -> None:
    arms = Arms(tmp_path, of=cell(device="gpu"))
    assert groups(arms.run()) == [sorted(FOUR)]
    assert [what for _, what in arms.diary if what in ("trial is spawned", "ready")] == [
        "trial is spawned",
        "ready",
    ] * len(FOUR)


def test_an_arm_on_gpus_is_set_up_alone_beside_one_of_an_engine_that_has_none(tmp_path: Path) -> None:
    slow = Play(at="build", happens=lambda _: time.sleep(0.2))  # so that two at once would be seen
    arms = Arms(tmp_path, {name: lambda _: slow for name in ("a", "b")}, names=("a", "b"))
    on_gpu = request_for(cell(device="gpu", engine="jax"), Sweep(window=0.01), tmp_path)
    arms.arms[1] = replace(arms.arms[1], request=on_gpu)
    arms.zygotes["a"].engine, arms.zygotes["b"].engine = "keras_distribution", "jax"
    assert groups(arms.run(pairs=[("a", "b")])) == [["a", "b"]]
    set_up = [what for _, what in arms.diary if what in ("trial is spawned", "ready")]
    assert set_up == ["trial is spawned", "ready"] * 2


def test_the_order_of_turns_is_drawn_anew_each_round_and_each_block(tmp_path: Path) -> None:
    arms = Arms(tmp_path)
    orders = []
    for block in (0, 1):
        arms.diary.clear()
        arms.run(block)
        turns_taken = [who for who, what in arms.diary if what.startswith("window")]
        orders.append([tuple(turns_taken[begin : begin + 4]) for begin in range(0, 20, 4)])
    assert len(set(orders[0])) > 1
    assert orders[0] != orders[1]


def test_the_order_of_starting_follows_from_seed_and_block_and_loses_nobody() -> None:
    orders = [start_order(1, block, FOUR) for block in range(40)]
    assert orders == [start_order(1, block, FOUR) for block in range(40)]
    assert all(sorted(order) == sorted(FOUR) for order in orders)
    assert {order[0] for order in orders} == set(FOUR)
    assert orders != [start_order(2, block, FOUR) for block in range(40)]


@pytest.mark.parametrize("pairs", [AGAINST_A, TWO_PAIRS], ids=["all against a", "two pairs"])
@pytest.mark.parametrize("room", [2, 3, 4])
def test_pairs_that_memory_parted_run_again_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]], room: int
) -> None:
    monkeypatch.setattr(turns.TurnGroup, "_another_fits", lambda group, *_: group._waiting and len(group._live) < room)
    arms = Arms(tmp_path)
    for block in range(4):
        ended = arms.run(block, pairs)
        assert [len(pairs_of(ended, a, b)) for a, b in pairs] == [1] * len(pairs)
        assert arms.blocks.complete(block, pairs)
        assert room < 4 or len(groups(ended)) == 1
        assert max(map(len, groups(ended))) <= room
    assert arms.counting.done == 4 * 4 + arms.counting.total
    assert (room < 4) == (arms.counting.total > 0)


def test_an_arm_that_runs_again_for_lack_of_memory_is_traced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns.TurnGroup, "_another_fits", lambda group, *_: group._waiting and len(group._live) < 2)

    def well(request: Request) -> Play:
        trace = request.trace and TraceRecord(path=request.trace.path, steps=5, bytes=1)
        return Play(outcome=WELL.model_copy(update={"trace": trace}))

    arms = Arms(tmp_path, {"a": well})
    trace = TraceRequest(run=str(tmp_path), path="traces/a")
    arms.arms[0] = replace(arms.arms[0], request=arms.arms[0].request.model_copy(update={"trace": trace}))
    again = sum(trial.side == "a" for trial in arms.run()) - 1
    assert again > 0
    assert [request.trace for request in arms.zygotes["a"].spawned] == [trace] + [None] * again


def test_an_arm_that_dies_is_not_tried_again_in_its_block(tmp_path: Path) -> None:
    arms = Arms(tmp_path, {"a": lambda _: dies("build")})
    ended = arms.run()
    assert sorted((trial.side, trial.status) for trial in ended) == [
        ("a", "crashed"),
        ("again", "ok"),
        ("c", "ok"),
        ("d", "ok"),
    ]
    assert arms.blocks.complete(0, AGAINST_A)
    assert pairs_of(ended, "a", "again") == ()


def test_a_block_is_complete_when_every_pair_took_turns_and_nobody_was_interrupted(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, manifest())

    def blocks(*trials: TrialRecord) -> ArmBlocks:
        return ArmBlocks(store, Quiet(), 5, 0, 1, Interrupts(), list(trials))

    a, b = trial(side="a", group="g"), trial(side="b", group="g")
    crashed = trial(side="b", group="g", status="crashed", throughput_examples_per_s=None)
    stopped = trial(side="b", group="g", status="interrupted", throughput_examples_per_s=None)
    sides = [("a", "b")]
    assert blocks(a, b).complete(0, sides)
    assert blocks(a, crashed).complete(0, sides)
    assert not blocks(a, stopped).complete(0, sides)
    assert not blocks(a).complete(0, sides)
    assert not blocks().complete(0, sides)
    assert not blocks(a, b).complete(1, sides)
    assert not blocks(a, b.model_copy(update={"group": "other"})).complete(0, sides)
    assert not blocks(a, b).complete(0, [*sides, ("a", "c")])


def test_blocks_in_a_row_in_which_something_failed_are_counted(tmp_path: Path) -> None:
    arms = Arms(tmp_path, {"again": at([1, 3, 4], dies())})
    counted = []
    for block in range(6):
        arms.run(block)
        counted.append(arms.blocks.failed_in_a_row)
    assert counted == [0, 1, 0, 1, 2, 0]


def test_a_block_that_was_interrupted_is_another_attempt_in_another_group(tmp_path: Path) -> None:
    def press(actor: Actor) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        actor.hang()

    arms = Arms(tmp_path, {"c": at([0], Play(2, press))})
    with pytest.raises(Interrupted):
        arms.run()
    assert not arms.blocks.complete(0, AGAINST_A)
    arms.blocks.interrupts.asked = False
    again = arms.run()
    assert {trial.attempt for trial in again} == {2}
    assert {trial.group for trial in again}.isdisjoint({t.group for t in arms.blocks.trials[:4]})
    assert arms.blocks.complete(0, AGAINST_A)
    assert [pair.a.attempt for pair in pairs_of(arms.blocks.trials, "a", "again")] == [2]


# before the first block


def with_plant(arm: Arm) -> Arm:
    planted = arm.request.model_copy(update={"plant": Plant(kind="device_work", share=0.05)})
    return Arm(arm.name, planted, arm.zygote, arm.timeout_s)


def test_a_rehearsal_is_a_trial_of_each_arm_alone_of_which_nothing_is_recorded(tmp_path: Path) -> None:
    arms = Arms(tmp_path)
    arms.blocks.rehearse([with_plant(arm) for arm in arms.arms[2:]])
    happened = [what for _, what in arms.diary]
    assert [who for who, _ in arms.diary] == ["c"] * 5 + ["d"] * 5
    assert happened == ["trial is spawned", "ready", "pilot", "window 0", "done 0"] * 2
    assert [request.plant for request in arms.zygotes["c"].spawned] == [Plant(kind="device_work", share=0.05)]
    assert load_run(arms.store.path).trials == arms.blocks.trials == []


@pytest.mark.parametrize(
    ("play", "message"),
    [
        (says("wrong_result", "update: off"), "c: wrong_result: update: off"),
        (dies(0), "c: crashed: ended by SIGSEGV during warmup"),
    ],
)
def test_a_rehearsal_that_does_not_end_well_is_one_line(tmp_path: Path, play: Play, message: str) -> None:
    arms = Arms(tmp_path, {"c": lambda _: play})
    with pytest.raises(HarnessError) as caught:
        arms.blocks.rehearse(arms.arms)
    assert str(caught.value) == f"{TWO.label}, {message}"
