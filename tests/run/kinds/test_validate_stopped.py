"""`validate` that is interrupted, is killed, or fails: what is left, and how it goes on."""

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis.validation.decisions import decisions_of
from harness.analysis.validation.summary import validation_of
from harness.errors import HarnessError, Interrupted, StorageError, UsageError
from harness.protocol.messages import Outcome, Request
from harness.record import Run, RunStore
from harness.record.validation import load_validation
from harness.run.progress import Quiet
from harness.run.resume import resume
from harness.trial.delay import PLACEBO
from tests.record.examples import cell, manifest
from tests.run.fakes import Actor, Play
from tests.run.validated import WILD, ValidateBench, as_planted


def arms_of(run: Run, block: int) -> list[str]:
    return sorted(trial.side or "" for trial in run.trials if trial.block == block and trial.status == "ok")


def press_ctrl_c(actor: Actor) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    actor.hang()


def stopped_in(bench: ValidateBench, trial: int) -> str:
    """Start, and press Ctrl-C in the window of a trial, counted from the first that is recorded."""
    bench.zygote.plays = as_planted(kind=_pressing(trial))
    with pytest.raises(Interrupted) as caught:
        bench.start()
    return str(caught.value)


def _pressing(trial: int, rehearsals: int = 4) -> Callable[[Request], Play]:
    seen = iter(range(10**6))
    return lambda _: Play(2, press_ctrl_c) if next(seen) == rehearsals + trial else Play()


def test_ctrl_c_keeps_what_was_measured_and_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ValidateBench(tmp_path, monkeypatch)
    said = stopped_in(bench, 8)
    assert said.endswith(
        f"trials are kept in {bench.path}; go on with: python -m harness validate --resume {bench.path}"
    )
    assert bench.stored.manifest.status == "interrupted"
    assert not validation_of(bench.stored).complete


def test_going_on_measures_whole_blocks_that_are_missing_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ValidateBench(tmp_path, monkeypatch)
    stopped_in(bench, 8)
    before = bench.stored.trials
    planned = {block for of in bench.plan.rounds for block in of.blocks}
    whole = {block for block in planned if len(arms_of(bench.stored, block)) == len(bench.plan.rounds[0].arms)}
    assert 0 < len(whole) < 6
    run = bench.resume()
    assert run.trials[: len(before)] == before
    assert {trial.block for trial in run.trials[len(before) :]} == planned - whole
    assert len(run.trials) - len(before) == (6 - len(whole)) * len(bench.plan.rounds[0].arms)
    assert run.manifest.status == "finished"
    assert validation_of(run).complete


@pytest.mark.parametrize("torn", [False, True])
def test_a_validation_that_was_killed_goes_on_with_the_plans_that_it_would_have_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    """Killed before the first look of the second round, the first one's looks done."""
    bench = ValidateBench(tmp_path, monkeypatch, as_planted(WILD))
    whole = bench.start()
    arms = len(bench.plan.rounds[0].arms)
    lines = (bench.path / "trials.jsonl").read_text().splitlines()
    kept = 6 * arms - 1
    assert whole.manifest.validation is not None
    assert [len(of.blocks) for of in whole.manifest.validation.rounds] == [5, 5]
    text = "\n".join(lines[:kept]) + "\n" + (lines[kept][:200] if torn else "")
    (bench.path / "trials.jsonl").write_text(text)
    stored = json.loads((bench.path / "run.json").read_text())
    stored |= {"status": "running", "finished_utc": None, "plans": stored["plans"][:3]}
    stored["validation"]["rounds"][1] |= {"blocks": [5, 6, 7], "stopped": {}}
    (bench.path / "run.json").write_text(json.dumps(stored))

    run = bench.resume(as_planted(WILD))
    assert run.trials[:kept] == whole.trials[:kept]
    assert run.manifest.plans == whole.manifest.plans
    assert run.manifest.validation == whole.manifest.validation
    assert validation_of(run).complete
    assert {trial.block for trial in run.trials[kept:]} == {5, 6, 7, 8, 9}


def test_a_plan_that_compares_with_nothing_instead_of_a_placebo_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ValidateBench(tmp_path, monkeypatch)
    bench.start()
    stored = json.loads((bench.path / "run.json").read_text())
    stored |= {"status": "interrupted"}
    for of in stored["validation"]["rounds"]:
        for arm in of["arms"]:
            arm["plant"] = arm["plant"] if arm["plant"]["share"] else None
    (bench.path / "run.json").write_text(json.dumps(stored))
    with pytest.raises(UsageError, match=r"was begun by an older version, .* instead of a placebo; begin a new one: "):
        bench.resume()


@pytest.mark.parametrize("placebo", [0.1, None])
def test_a_plan_of_another_placebo_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, placebo: float | None
) -> None:
    bench = ValidateBench(tmp_path, monkeypatch)
    bench.start()
    stored = json.loads((bench.path / "run.json").read_text())
    assert stored["validation"]["placebo"] == PLACEBO
    stored["validation"]["placebo"] = placebo
    (bench.path / "run.json").write_text(json.dumps(stored | {"status": "interrupted"}))
    with pytest.raises(
        UsageError, match=f"placebo was another one than this one's {PLACEBO:g} of a window's steps; begin a new"
    ):
        bench.resume()


def test_an_arm_that_dies_costs_its_decision_a_block_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = iter([True])
    dies = Play(1, lambda actor: actor.end(-11))

    def once(request: Request) -> Play:
        planted = request.plant is not None and request.plant.share == 0.03
        recorded = planted and any(bench.results.glob("*/trials.jsonl")) and bool(bench.stored.trials)
        return dies if recorded and next(deaths, False) else Play()

    bench = ValidateBench(tmp_path, monkeypatch, as_planted(kind=once))
    run = bench.start()
    assert [trial.status for trial in run.trials].count("crashed") == 1
    assert run.manifest.status == "finished"
    pairs = [len(one.pairs) for one in decisions_of(run.manifest, run.trials)]
    assert sorted(pairs) == [2, *[3] * (len(pairs) - 1)]


@pytest.mark.parametrize("status", ["wrong_result", "unsupported"])
def test_a_cell_that_cannot_be_validated_is_one_line_at_once_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    refuse = Play(outcome=Outcome(status=status, reason="update: off"))  # type: ignore[arg-type]
    bench = ValidateBench(tmp_path, monkeypatch, lambda request: refuse if request.task == "trial" else Play())
    with pytest.raises(HarnessError) as caught:
        bench.start()
    assert f"{status}: update: off" in str(caught.value)
    assert not bench.results.exists()


def test_a_cell_that_fails_later_ends_the_validation_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sick(request: Request) -> Play:
        begun = any(bench.results.glob("*/trials.jsonl")) and len(bench.stored.trials) > 6
        placebo = request.plant is not None and request.plant.share == 0
        return Play("build", lambda actor: actor.end(-11)) if begun and placebo else Play()

    bench = ValidateBench(tmp_path, monkeypatch, as_planted(kind=sick))
    with pytest.raises(HarnessError) as caught:
        bench.start()
    assert f"go on with: python -m harness validate --resume {bench.path}" in str(caught.value)
    assert "crashed: ended by SIGSEGV during " in str(caught.value)
    assert len({trial.block for trial in bench.stored.trials if trial.status == "crashed"}) <= 3
    run = bench.resume()
    assert run.manifest.status == "finished"
    assert validation_of(run).complete


def test_a_users_own_model_that_cannot_be_loaded_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = Play(happens=lambda actor: actor.say("unsupported", "model: no 'model' in mine"))
    bench = ValidateBench(
        tmp_path,
        monkeypatch,
        lambda request: refuse if request.task == "preflight" else Play(),
        cells=[cell(model="mine:model")],
    )
    with pytest.raises(UsageError, match="model: no 'model' in mine"):
        bench.start()
    assert not bench.results.exists()


def test_data_that_are_not_there_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = Play(happens=lambda actor: actor.say("unsupported", "no room"))
    bench = ValidateBench(tmp_path, monkeypatch, lambda request: refuse if request.task == "prepare" else Play())
    with pytest.raises(HarnessError, match="data 'digits' is not available: no room"):
        bench.start()
    assert not bench.results.exists()


def test_what_is_finished_is_not_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ValidateBench(tmp_path, monkeypatch, rounds=1)
    before = bench.start()
    assert bench.resume() == before
    assert bench.zygote.spawned == []


def test_only_a_validation_can_be_gone_on_with_and_ab_names_the_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        pass
    with pytest.raises(UsageError, match="is a run of sweep; go on with: python -m harness sweep --resume"):
        resume("validation", store.path, Quiet())
    bench = ValidateBench(tmp_path / "validation", monkeypatch, rounds=1)
    bench.start()
    with pytest.raises(UsageError) as caught:
        resume("ab", bench.path, Quiet())
    assert f"go on with: python -m harness validate --resume {bench.path}" in str(caught.value)


def test_a_validation_is_finished_only_once_its_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ValidateBench(tmp_path, monkeypatch)
    status: list[str] = []

    def full(*_: object) -> None:
        status.append(bench.stored.manifest.status)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("harness.record.validation.replace_own_file", full)
        with pytest.raises(
            StorageError, match=r"validation\.json': No space left.* then go on with --resume"
        ) as caught:
            bench.start()
    assert caught.value.run == bench.path.name
    assert (status, bench.stored.manifest.status) == (["running"], "interrupted")
    before = len(bench.stored.trials)
    run = bench.resume()
    assert (len(run.trials), run.manifest.status) == (before, "finished")
    assert load_validation(bench.path) == validation_of(run)
