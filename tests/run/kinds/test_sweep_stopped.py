"""A sweep that Ctrl-C or a full disk ends before its plan is done: what is kept, and what going on measures."""

import os
import platform
import signal
from pathlib import Path

import pytest

from harness.environment.fact import Facts
from harness.environment.software import package_versions
from harness.errors import Interrupted, StorageError, UsageError
from harness.protocol.messages import Outcome, Request
from harness.record import RunManifest, RunStore, TrialRecord, load_run
from harness.run.kinds.sweep import SweepRun
from harness.run.progress import Quiet
from harness.run.resume import resume
from tests.record.examples import cell
from tests.run.fakes import Actor, Bench, Play, all_play, only
from tests.run.swept import BASE, CELLS, THREE, TWO


def press_ctrl_c() -> Play:
    """A trial during whose third window Ctrl-C is pressed."""

    def press(actor: Actor) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        actor.hang()

    return Play(2, press)


def test_an_interruption_ends_live_trials_and_keeps_their_windows(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(TWO, press_ctrl_c()), sweep={"trials": 2})
    with pytest.raises(Interrupted):
        bench.start()
    stored = load_run(bench.path)
    assert stored.manifest.status == "interrupted"
    assert {t.status for t in stored.trials} == {"interrupted"}
    assert sorted(t.cell_id for t in stored.trials) == sorted(item.cell_id for item in CELLS)
    for record in stored.trials:
        assert record.windows is not None
        assert len(record.windows.seconds) >= 2
        assert record.throughput_examples_per_s is None


def test_a_sweep_is_not_gone_on_with_in_an_environment_of_other_versions(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(TWO, press_ctrl_c()), sweep={"trials": 2})
    with pytest.raises(Interrupted):
        bench.start()
    manifest = load_run(bench.path).manifest
    facts = {"python.version": platform.python_version()}
    facts = {name: value for name, value in facts.items() if not name.startswith("package.")}
    facts |= {f"package.{name}": version for name, version in package_versions().items()}
    keras = facts.pop("package.keras")
    write(bench.path, manifest, {**facts, "package.numpy": "0.1", "package.libtpu": "7", "package.tf_keras": None})
    before = (bench.path / "trials.jsonl").read_bytes()
    there = facts["package.numpy"]
    changed = rf"numpy 0\.1 → {there}, libtpu 7 → not there, keras not there → {keras}"
    with pytest.raises(UsageError, match=rf"begun \({changed}\); begin a new run"):
        resume("sweep", bench.path, Quiet())
    assert (bench.path / "trials.jsonl").read_bytes() == before


def test_a_sweep_is_not_gone_on_with_on_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, CELLS)
    with RunStore.create(tmp_path / "results", bench.manifest()) as store:
        facts = store.manifest.machine.facts
    before = (bench.path / "run.json").read_bytes()
    monkeypatch.setattr("harness.run.runner.facts", lambda: {**facts, "cpu.model": "another processor"})
    said = r"was begun on another machine or in another state \(cpu\.model: a processor → another processor\); begin"
    with pytest.raises(UsageError, match=said):
        resume("sweep", bench.path, Quiet())
    assert (bench.path / "run.json").read_bytes() == before


@pytest.mark.parametrize(("then", "now"), [("a" * 40, "b" * 40), ("a" * 40, "a" * 40 + "-dirty")])
def test_another_revision_or_changes_beyond_it_are_said_where_a_run_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], then: str, now: str
) -> None:
    bench = Bench(tmp_path, CELLS)
    with RunStore.create(tmp_path / "results", bench.manifest()) as store:
        facts = store.manifest.machine.facts
    gone_on: list[SweepRun] = []
    monkeypatch.setattr("harness.run.runner.carry_out", lambda run, **_: gone_on.append(run))
    for revision, said in ((now, True), (then, False), (None, False)):
        write(bench.path, store.manifest, {**facts, "git.revision": then})
        monkeypatch.setattr("harness.run.runner.facts", lambda revision=revision: {**facts, "git.revision": revision})
        resume("sweep", bench.path, Quiet())
        words = f"harness: this run was begun at git revision {then}, and goes on at {revision}; begin a new run"
        assert capsys.readouterr().err.startswith(words) == said
    assert len(gone_on) == 3


def write(run: Path, manifest: RunManifest, facts: Facts) -> None:
    """The manifest with other facts of the machine."""
    machine = manifest.machine.model_copy(update={"facts": facts})
    (run / "run.json").write_text(manifest.model_copy(update={"machine": machine}).model_dump_json())


def test_short_windows_do_not_keep_an_interruption_waiting(tmp_path: Path) -> None:
    press = Play(2, lambda _: os.kill(os.getpid(), signal.SIGINT))
    bench = Bench(tmp_path, CELLS, only(TWO, press), sweep={"windows": 100})
    with pytest.raises(Interrupted):
        bench.start()
    longest = max(len(t.windows.seconds) for t in load_run(bench.path).trials if t.windows)
    assert 2 <= longest <= 4


def test_a_second_ctrl_c_while_trials_are_being_ended_ends_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, CELLS, only(TWO, press_ctrl_c()))
    monkeypatch.setattr(bench.zygote, "killing", lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted):
        bench.start()
    assert signal.getsignal(signal.SIGINT) is before
    assert load_run(bench.path).manifest.status == "interrupted"


def test_a_resumed_run_measures_only_what_is_missing_and_is_then_complete(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, sweep={"trials": 3})
    good_trials = {"left": 4}

    def plays(request: Request) -> Play:
        if request.task == "trial":
            good_trials["left"] -= 1
        return press_ctrl_c() if good_trials["left"] < 0 else Play()

    bench.zygote.plays = plays
    with pytest.raises(Interrupted):
        bench.start()
    before = load_run(bench.path).trials
    finished = [(t.cell_id, t.block) for t in before if t.status == "ok"]
    assert len(finished) == 3

    bench.zygote.spawned.clear()
    bench.zygote.plays = all_play(Play())
    bench.resume()
    after = load_run(bench.path)
    ok = [(t.cell_id, t.block) for t in after.trials if t.status == "ok"]
    assert sorted(ok) == sorted((item.cell_id, block) for item in CELLS for block in range(3))
    assert len(bench.zygote.trials()) == 6
    assert after.trials[: len(before)] == before
    assert after.manifest.status == "finished"
    assert len({(t.cell_id, t.block, t.attempt) for t in after.trials}) == len(after.trials)


def test_a_cell_that_is_missing_is_measured_again_beside_its_base_case(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS)
    with RunStore.create(tmp_path / "results", bench.manifest()):
        pass
    bench.resume()
    lines = (bench.path / "trials.jsonl").read_text().splitlines()
    kept = [line for line in lines if THREE.cell_id not in line]
    (bench.path / "trials.jsonl").write_text("\n".join(kept) + "\n")

    bench.resume()
    stored = load_run(bench.path).trials
    assert [t.cell_id for t in stored[2:]].count(THREE.cell_id) == 1
    assert sorted(t.cell_id for t in stored[2:]) == sorted([BASE.cell_id, THREE.cell_id])
    assert {t.group for t in stored[2:]}.isdisjoint({t.group for t in stored[:2]})
    assert next(t.attempt for t in stored[2:] if t.cell_id == BASE.cell_id) == 2


CRASHES = Play(2, lambda actor: actor.end(1))
WRONG = Outcome(status="wrong_result", reason="copies differ")


@pytest.mark.parametrize(
    ("fails", "status", "tried_again"),
    [
        (CRASHES, "crashed", True),
        (Play(2, Actor.hang), "timeout", True),
        (Play(2, lambda actor: actor.say("out_of_memory", "OOM")), "out_of_memory", True),
        (Play(outcome=WRONG), "wrong_result", False),
    ],
)
def test_what_failed_is_tried_again_where_that_is_asked_for_and_stays_on_record(
    tmp_path: Path, fails: Play, status: str, tried_again: bool
) -> None:
    short = {"timeout": 0.5} if status == "timeout" else {}
    bench = Bench(tmp_path, CELLS, only(THREE, fails), sweep=short)
    bench.start()
    before = load_run(bench.path).trials
    assert {t.status for t in before if t.cell_id == THREE.cell_id} == {status}
    bench.zygote.plays = all_play(Play())
    bench.resume()
    assert load_run(bench.path).trials == before
    bench.resume(retry=True)
    after = load_run(bench.path)
    assert after.trials[: len(before)] == before
    more = [(t.cell_id, t.status) for t in after.trials[len(before) :]]
    again = [(BASE.cell_id, "ok"), (THREE.cell_id, "ok")] if tried_again else []
    assert sorted(more) == sorted(again)
    assert after.manifest.status == "finished"
    bench.resume(retry=True)
    assert load_run(bench.path).trials == after.trials


def test_a_second_try_that_is_stopped_leaves_a_finished_run_finished_and_is_gone_on_with(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(THREE, CRASHES), sweep={"trials": 4, "time": 0.001})
    bench.start()
    blocks = load_run(bench.path).manifest.plans
    bench.zygote.plays = only(THREE, press_ctrl_c())
    with pytest.raises(Interrupted, match=r"--retry$"):
        bench.resume(retry=True)
    assert load_run(bench.path).manifest.status == "finished"
    bench.zygote.plays = all_play(Play())
    bench.resume()
    of_first = [t.status for t in load_run(bench.path).trials if (t.cell_id, t.block) == (THREE.cell_id, 0)]
    assert of_first == ["crashed", "interrupted", "ok"]
    assert load_run(bench.path).manifest.plans == blocks, "no block is planned beyond those that there were"
    bench.resume(retry=True)
    last = {(t.cell_id, t.block): t.status for t in load_run(bench.path).trials}
    assert set(last.values()) == {"ok"}


@pytest.mark.parametrize(
    ("fails", "before"),
    [
        (CRASHES, ["crashed"]),
        (Play(2, lambda actor: actor.say("out_of_memory", "OOM")), ["out_of_memory", "out_of_memory"]),
    ],
)
def test_however_often_it_failed_before_a_second_try_that_was_stopped_is_gone_on_with(
    tmp_path: Path, fails: Play, before: list[str]
) -> None:
    bench = Bench(tmp_path, CELLS, only(THREE, fails))
    bench.start()
    bench.zygote.plays = only(THREE, press_ctrl_c())
    with pytest.raises(Interrupted):
        bench.resume(retry=True)
    bench.zygote.plays = only(THREE, fails)
    bench.resume()
    tried = [t.status for t in load_run(bench.path).trials if t.cell_id == THREE.cell_id]
    assert tried == [*before, "interrupted", *before], "where memory is short by itself again, too"
    bench.resume()
    assert len([t for t in load_run(bench.path).trials if t.cell_id == THREE.cell_id]) == len(tried)


def test_what_ran_out_of_memory_by_itself_is_tried_by_itself_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(THREE, Play(2, lambda actor: actor.say("out_of_memory", "OOM"))))
    bench.start()

    def in_company_only(request: Request) -> Play:
        tried = sum(one.cell == request.cell for one in bench.zygote.spawned)
        short = Play(2, lambda actor: actor.say("out_of_memory", "OOM"))
        return short if request.cell == THREE and tried == 3 else Play()

    bench.zygote.plays = in_company_only
    bench.resume(retry=True)
    tries = [(t.status, t.interleaving) for t in load_run(bench.path).trials if t.cell_id == THREE.cell_id]
    assert tries == [
        ("out_of_memory", "turns"),
        ("out_of_memory", "blocks"),
        ("out_of_memory", "turns"),
        ("ok", "blocks"),
    ]


def test_windows_of_what_is_tried_again_are_as_long_as_those_before(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(THREE, CRASHES), sweep={"trials": 2})
    bench.start()
    bench.zygote.plays = all_play(Play(seconds=lambda number: 0.2 if number else 0.1))
    bench.resume(retry=True)
    steps = {t.windows.steps_per_window for t in load_run(bench.path).trials if t.cell == BASE and t.windows}
    assert len(steps) == 1


def test_what_fails_again_is_tried_once_a_sitting(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(THREE, CRASHES))
    bench.start()
    for attempts in ([1, 2], [1, 2, 3]):
        bench.resume(retry=True)
        assert [t.attempt for t in load_run(bench.path).trials if t.cell_id == THREE.cell_id] == attempts


def test_a_full_disk_ends_the_run_with_everything_before_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, appended = RunStore.append, []

    def append(store: RunStore, record: TrialRecord) -> None:
        if len(appended) == 2:
            raise StorageError("cannot append: No space left on device")
        appended.append(record)
        real(store, record)

    monkeypatch.setattr(RunStore, "append", append)
    bench = Bench(tmp_path, CELLS, sweep={"trials": 2})
    with pytest.raises(StorageError, match="No space left"):
        bench.start()
    assert load_run(bench.path).trials == appended
    monkeypatch.setattr(RunStore, "append", real)
    run = bench.resume()
    assert sorted((t.cell_id, t.block) for t in run.trials if t.attempt == 1) == sorted(
        (item.cell_id, block) for item in CELLS for block in range(2)
    )


@pytest.mark.parametrize("fault", [StorageError("cannot append: No space left on device"), ZeroDivisionError()])
def test_a_fault_in_one_trial_of_a_group_ends_the_others_as_an_interruption_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    real = RunStore.append

    def append(store: RunStore, record: TrialRecord) -> None:
        if record.cell_id == TWO.cell_id:
            raise fault
        real(store, record)

    monkeypatch.setattr(RunStore, "append", append)
    bench = Bench(tmp_path, CELLS, only(TWO, Play(2, lambda actor: actor.end(1))))
    with pytest.raises(type(fault)):
        bench.start()
    stored = load_run(bench.path)
    assert stored.manifest.status == "interrupted"
    assert {t.cell_id: t.status for t in stored.trials} == {
        item.cell_id: "interrupted" for item in CELLS if item != TWO
    }
    assert all(t.windows is not None and len(t.windows.seconds) >= 2 for t in stored.trials)


def test_a_source_that_is_changed_during_a_run_is_a_warning_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = Path("mine.py")
    mine.write_text("a = 1")
    edits = Play(2, lambda _: mine.write_text("a = 22"))
    bench = Bench(tmp_path, [cell(model="mine:make")], all_play(edits), sweep={"trials": 3})
    bench.zygote.due = True
    bench.start()
    said = (
        "the source of mine was changed during the run, which was noticed after 1 trial: trials may be of two "
        "programs; begin a new run"
    )
    assert load_run(bench.path).manifest.machine.warnings == ["w", said]
    assert capsys.readouterr().err == f"harness: {said}\n"
