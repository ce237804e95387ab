"""`ab` when a side dies, computes the wrong thing or has no data: what is left, and that it is no verdict."""

from pathlib import Path

import pytest

from harness.analysis.comparison import comparison_of_ab
from harness.analysis.comparison.pairs import pairs_of
from harness.analysis.estimates.verdict import Margins
from harness.errors import HarnessError, StorageError, UsageError
from harness.protocol.messages import Outcome, Report, Request
from harness.record import Run, RunStore, TrialRecord
from harness.run.kinds.decision import AbSettings
from tests.record.examples import cell
from tests.run.fakes import PROVED, Play, Plays
from tests.run.sided import TWO, AbBench, at, dies, lasting, says

SHORT_PILOT = AbSettings(Margins(), looks=(2,))


def blocks_of(run: Run) -> list[int]:
    return sorted({trial.block for trial in run.trials})


def test_a_side_that_dies_costs_its_block_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=at([1, 4], dies(), lasting([0.05])))
    run = bench.start()
    dead = [trial for trial in run.trials if trial.status != "ok"]
    assert [(trial.side, trial.block, trial.status) for trial in dead] == [("b", 1, "crashed"), ("b", 4, "crashed")]
    assert [trial.reason for trial in dead] == ["ended by SIGSEGV during steady"] * 2
    assert [pair.block for pair in pairs_of(run.trials)] == [0, 2, 3, 5]
    comparison = comparison_of_ab(run)
    assert (comparison.blocks, comparison.verdict) == (4, "slower")
    assert run.manifest.status == "finished"


@pytest.mark.parametrize("phase", ["build", "first_step", 0, "finish"])
def test_a_side_that_dies_in_two_blocks_in_a_row_ends_the_run_which_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str | int
) -> None:
    bench = AbBench(tmp_path, monkeypatch, a=at(range(2, 99), dies(phase)))
    run = bench.start()
    assert blocks_of(run) == [0, 1, 2, 3]
    assert [trial.status for trial in run.trials if trial.side == "b"] == ["ok"] * 4
    assert run.manifest.status == "interrupted", "it can be gone on with"
    assert len(run.manifest.plans) == 1
    comparison = comparison_of_ab(run)
    assert (comparison.verdict, comparison.blocks) == ("undecided", 0), "it did not come to its first look"


@pytest.mark.parametrize("status", ["wrong_result", "unsupported"])
@pytest.mark.parametrize("block", [0, 3])
def test_what_another_block_would_only_repeat_ends_the_run_and_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, block: int
) -> None:
    run = AbBench(tmp_path, monkeypatch, b=at([block], says(status, "update: off by 0.5"))).start()
    assert blocks_of(run) == list(range(block + 1))
    assert run.manifest.status == "finished"
    if status == "unsupported" and block:
        return  # it ran three times, so it is not the cell that cannot run
    comparison = comparison_of_ab(run)
    assert comparison.verdict == "invalid"
    assert comparison.exit_code() == (1 if status == "wrong_result" else 4)
    assert "update: off by 0.5" in (comparison.rows[0].verdicts.wall.reason or "")
    assert (comparison.rows[0].verdicts.wall.reason or "").startswith("B ")


def test_a_result_that_turns_out_wrong_after_the_windows_is_no_verdict_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = PROVED.model_copy(update={"replicas_agree": False})
    wrong = Outcome(status="wrong_result", reason="replicas_agree: off", checks=checks)
    run = AbBench(tmp_path, monkeypatch, b=at([1], Play(outcome=wrong))).start()
    assert blocks_of(run) == [0, 1]
    assert comparison_of_ab(run).verdict == "invalid"


# data and the user's own


def refusing(task: str, reason: str) -> Plays:
    def plays(request: Request) -> Play:
        return Play(happens=lambda actor: actor.say("unsupported", reason)) if request.task == task else Play()

    return plays


def test_data_that_are_not_there_are_one_line_and_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch, b=refusing("prepare", "no room"))
    with pytest.raises(HarnessError) as caught:
        bench.start()
    assert str(caught.value) == "data 'digits' is not available: no room"
    assert not bench.results.exists()
    assert bench.spawned() == []


def test_what_data_wait_for_is_said_while_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    says = Play(happens=lambda actor: actor.channel.send(Report(note="waiting for another process\x1b[2J")))
    bench = AbBench(tmp_path, monkeypatch, lambda request: says if request.task == "prepare" else Play())
    bench.start()
    assert "harness: waiting for another process\N{REPLACEMENT CHARACTER}[2J\n" in capsys.readouterr().err


def test_a_users_own_model_that_cannot_be_loaded_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cell(model="mine:model")
    bench = AbBench(tmp_path, monkeypatch, b=refusing("preflight", "model: no 'model' in mine"), cells=(own, own))
    with pytest.raises(UsageError, match="model: no 'model' in mine"):
        bench.start()
    assert not bench.results.exists()


def tasks(bench: AbBench) -> list[str]:
    return [what.removesuffix(" is spawned") for _, what in bench.diary if what.endswith("spawned")]


def test_data_are_prepared_once_in_each_environment_before_any_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = AbBench(tmp_path / "apart", monkeypatch, settings=SHORT_PILOT)
    apart.start()
    assert apart.diary[:2] == [("a", "prepare is spawned"), ("b", "prepare is spawned")]
    assert tasks(apart).count("prepare") == 2
    as_one = AbBench(tmp_path / "as one", monkeypatch, one_environment=True, settings=SHORT_PILOT)
    as_one.start()
    assert tasks(as_one) == ["prepare", *["trial"] * 4]


def test_sides_with_different_data_in_one_environment_have_both_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = (TWO, cell(data="synthetic"))
    bench = AbBench(tmp_path, monkeypatch, cells=cells, one_environment=True, settings=SHORT_PILOT)
    bench.start()
    prepared = [request.cell.data for request in bench.zygotes["a"].spawned if request.task == "prepare"]
    assert prepared == ["digits", "synthetic"]


def test_a_fault_that_stops_the_run_does_not_leave_it_looking_as_if_it_were_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AbBench(tmp_path, monkeypatch)
    append, kept = RunStore.append, []

    def full_after_five(store: RunStore, record: TrialRecord) -> None:
        if len(kept) == 5:
            raise StorageError("results: no space left")
        append(store, record)
        kept.append(record)

    monkeypatch.setattr(RunStore, "append", full_after_five)
    with pytest.raises(StorageError, match="no space left"):
        bench.start()
    assert bench.stored.manifest.status == "interrupted"
    assert len(bench.stored.trials) == 5
