"""`ab` that was stopped goes on: whole blocks, only those that are missing, by the same plan."""

import json
import os
import signal
from pathlib import Path

import pytest

from harness.analysis.comparison import comparison_of_ab
from harness.analysis.comparison.pairs import pairs_of
from harness.analysis.estimates.verdict import Margins
from harness.errors import Interrupted, UsageError
from harness.record import Run, RunStore, TrialRecord
from harness.record.manifest import PlanRecord
from harness.run.kinds.decision import AbSettings
from harness.run.progress import Quiet
from harness.run.resume import resume
from tests.comparisons import FACTS
from tests.record.examples import manifest
from tests.run.fakes import Actor, FakeZygote, Play
from tests.run.sided import OTHER_OP, TWO, AbBench, at, dies, in_turn, lasting, says

WILD = (0.12, -0.11, 0.04, -0.13, 0.09, -0.01)


def press_ctrl_c(actor: Actor) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    actor.hang()


def interrupted(bench: AbBench) -> str:
    """Start, and be interrupted; what is said."""
    with pytest.raises(Interrupted) as caught:
        bench.start()
    return str(caught.value)


def statuses(run: Run, block: int) -> list[tuple[str | None, int, str]]:
    return sorted((t.side, t.attempt, t.status) for t in run.trials if t.block == block)


def killed_after(bench: AbBench, records: int, *, torn: bool = False, plans: int = 9) -> list[TrialRecord]:
    """Make a finished run look as `kill -9` would have left it; the records that are left."""
    stored = bench.stored
    changes = {"status": "running", "finished_utc": None, "plans": stored.manifest.plans[:plans]}
    (bench.path / "run.json").write_text(stored.manifest.model_copy(update=changes).model_dump_json())
    lines = (bench.path / "trials.jsonl").read_text().splitlines()
    tail = lines[records][:100] if torn else ""
    (bench.path / "trials.jsonl").write_text("\n".join(lines[:records]) + "\n" + tail)
    return stored.trials[:records]


def test_ctrl_c_keeps_what_was_measured_and_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=at([2], Play(2, press_ctrl_c)))
    said = interrupted(bench)
    stored = bench.stored
    assert said == (
        f"interrupted; 6 trials are kept in {bench.path}; go on with: python -m harness ab --resume {bench.path}"
    )
    assert stored.manifest.status == "interrupted"
    assert statuses(stored, 2) == [("a", 1, "interrupted"), ("b", 1, "interrupted")]
    assert [pair.block for pair in pairs_of(stored.trials)] == [0, 1]


def test_going_on_measures_what_is_missing_and_the_interrupted_block_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=at([2], Play(2, press_ctrl_c)))
    interrupted(bench)
    before = bench.stored.trials
    run = bench.resume()
    assert run.trials[: len(before)] == before
    assert statuses(run, 2) == [("a", 1, "interrupted"), ("a", 2, "ok"), ("b", 1, "interrupted"), ("b", 2, "ok")]
    assert [pair.block for pair in pairs_of(run.trials)] == [0, 1, 2, 3, 4, 5]
    assert len(bench.spawned()) == 2 * 4
    assert run.manifest.status == "finished"


def test_a_side_that_had_ended_well_runs_again_beside_the_one_that_had_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_out: list[int] = []

    def in_second_place(actor: Actor) -> None:
        seen_out.append(1)
        if len(seen_out) == 4:  # the second to be seen out in block 1
            while len(bench.stored.trials) < 3 and not actor.killed.wait(0.01):
                pass
            press_ctrl_c(actor)

    plays = [in_turn(lambda _: Play("finish", in_second_place)) for _ in "ab"]
    bench = AbBench(tmp_path, monkeypatch, *plays)
    interrupted(bench)
    assert sorted(status for _, _, status in statuses(bench.stored, 1)) == ["interrupted", "ok"]
    run = bench.resume()
    assert [(attempt, status) for _, attempt, status in statuses(run, 1) if attempt == 2] == [(2, "ok")] * 2
    pairs = pairs_of(run.trials)
    assert [pair.block for pair in pairs] == [0, 1, 2, 3, 4, 5]
    assert {(pair.a.attempt, pair.b.attempt) for pair in pairs if pair.block == 1} == {(2, 2)}


def test_a_run_goes_on_with_the_same_steps_and_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = AbBench(
        tmp_path,
        monkeypatch,
        lasting([0.0], steps=5),
        at([3], Play(2, press_ctrl_c), lasting([0.0], steps=6)),
        cells=(TWO, OTHER_OP),
        sweep={"seed": 7},
    )
    interrupted(bench)
    run = bench.resume(a=lasting([0.0], steps=60), b=lasting([0.0], steps=2))
    assert {trial.windows.steps_per_window for trial in run.trials if trial.windows} == {6}
    planned = [group for plan in run.manifest.plans for block in plan.blocks for group in block]
    started = [
        [trial.side for trial in sorted(run.trials, key=lambda trial: trial.order) if trial.group == group]
        for group in dict.fromkeys(trial.group for trial in run.trials if trial.status == "ok")
    ]
    assert started == planned


@pytest.mark.parametrize(("records", "again"), [(0, 6), (1, 6), (2, 5), (5, 4), (11, 1), (12, 0)])
@pytest.mark.parametrize("torn", [False, True])
def test_a_run_that_was_killed_goes_on_from_its_last_whole_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int, again: int, torn: bool
) -> None:
    bench = AbBench(tmp_path, monkeypatch)
    bench.start()
    kept = killed_after(bench, records, torn=torn and records < 12)
    run = bench.resume()
    assert run.trials[: len(kept)] == kept
    assert len(bench.spawned()) == 2 * again
    assert [pair.block for pair in pairs_of(run.trials)] == [0, 1, 2, 3, 4, 5]
    assert run.manifest.status == "finished"
    assert not run.torn


@pytest.mark.parametrize("planned", [True, False], ids=["after a look", "before the next blocks are planned"])
def test_a_run_that_was_killed_goes_on_with_the_looks_of_its_sealed_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned: bool
) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=lasting(WILD), settings=AbSettings(Margins(), looks=(4, 7, 9)))
    plans = bench.start().manifest.plans
    assert len(plans) == 3
    killed_after(bench, 12 if planned else 8, plans=2 if planned else 1)
    run = bench.resume(b=lasting(WILD))
    assert run.manifest.plans == plans
    assert [pair.block for pair in pairs_of(run.trials)] == list(range(9))
    assert len(bench.spawned()) == 2 * (9 - (6 if planned else 4))


def test_a_run_that_was_killed_after_the_look_that_decides_measures_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = AbSettings(Margins(), looks=(4, 7))
    bench = AbBench(tmp_path, monkeypatch, b=lasting([0.1, 0.101, 0.102, 0.1]), settings=settings)
    bench.start()
    killed_after(bench, 8)
    run = bench.resume()
    assert bench.spawned() == []
    assert run.manifest.status == "finished"
    assert comparison_of_ab(run).verdict == "slower"


def test_a_plan_in_two_stages_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = AbBench(tmp_path, monkeypatch)
    [plan] = bench.start().manifest.plans
    killed_after(bench, 4)
    older = bench.stored.manifest.model_copy(
        update={"plans": [PlanRecord.sealed(plan.seed, 1, plan.blocks, plan.first_block)]}
    )
    (bench.path / "run.json").write_text(older.model_dump_json())
    with pytest.raises(UsageError, match=r"in two stages instead of looks; begin a new one: python -m harness ab"):
        bench.resume()


def test_a_block_in_which_a_side_had_crashed_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = Play(1, lambda actor: actor.end(-11))
    bench = AbBench(tmp_path, monkeypatch, b=at([1], crashes))
    bench.start()
    killed_after(bench, 8)
    run = bench.resume()
    assert statuses(run, 1) == [("a", 1, "ok"), ("b", 1, "crashed")]
    assert [pair.block for pair in pairs_of(run.trials)] == [0, 2, 3, 4, 5]


def test_a_run_that_gave_up_on_a_side_that_died_again_and_again_goes_on_with_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=at([1, 2], dies()))
    stopped = bench.start()
    assert stopped.manifest.status == "interrupted"
    assert f"The run ({stopped.manifest.run_id}) did not finish; `--resume` runs the rest." in (
        comparison_of_ab(stopped).remarks
    )
    assert max(trial.block for trial in stopped.trials) == 2
    run = bench.resume()
    assert run.manifest.status == "finished"
    assert [pair.block for pair in pairs_of(run.trials)] == [0, 3, 4, 5]


def test_a_wrong_result_after_a_crash_is_no_reason_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=at([1], dies(), at([2], says("wrong_result", "update: off by 0.5"))))
    assert bench.start().manifest.status == "finished"


def test_a_second_interruption_is_as_good_as_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=at([2], Play(2, press_ctrl_c)))
    interrupted(bench)
    with pytest.raises(Interrupted, match="10 trials are kept"):
        bench.resume(a=at([1], Play(0, press_ctrl_c)))
    run = bench.resume()
    assert [pair.block for pair in pairs_of(run.trials)] == [0, 1, 2, 3, 4, 5]
    keys = [(trial.side, trial.block, trial.attempt) for trial in run.trials]
    assert len(set(keys)) == len(keys)


def test_an_interruption_while_data_are_prepared_leaves_a_run_that_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed = Play(happens=press_ctrl_c)
    bench = AbBench(tmp_path, monkeypatch, lambda request: pressed if request.task == "prepare" else Play())
    said = interrupted(bench)
    assert said.startswith("interrupted; 0 trials are kept")
    assert json.loads((bench.path / "run.json").read_text())["status"] == "interrupted"
    assert len(pairs_of(bench.resume().trials)) == 6


def test_a_run_that_compares_nothing_is_bad_usage_and_the_right_verb_is_named(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        pass
    with pytest.raises(UsageError) as caught:
        resume("ab", store.path, Quiet())
    assert f"go on with: python -m harness sweep --resume {store.path}" in str(caught.value)


def test_another_machine_or_another_tensorflow_cannot_go_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch)
    bench.start()
    killed_after(bench, 4)
    before = (bench.path / "trials.jsonl").read_bytes()
    for facts in ({**FACTS, "machine.id": "000000000000"}, {**FACTS, "cpu.usable_cores": 64}):
        with monkeypatch.context() as patch:
            patch.setattr("harness.run.runner.facts", lambda facts=facts: facts)
            with pytest.raises(UsageError, match=r"was begun on another machine or in another state .*; begin a new"):
                bench.resume()
    with monkeypatch.context() as patch:
        patch.setattr(bench.zygotes["b"], "versions", {**FakeZygote.versions, "keras": "9.9.9"}, raising=False)
        patch.setattr("harness.run.runner.open_launchers", lambda *_: pytest.fail("hosts were asked to join"))
        with pytest.raises(UsageError, match=r"side b has keras 9\.9\.9 by now, and had 3\.11\.0 when"):
            bench.resume()
    assert (bench.path / "trials.jsonl").read_bytes() == before
    assert len(bench.resume().trials) == 12
