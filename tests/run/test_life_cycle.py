"""A run is one life cycle, whatever its kind: how it begins, ends, goes on, and what it leaves behind."""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError, Interrupted, StorageError, UsageError
from harness.record.reading import list_runs, load_manifest
from harness.record.store import RunStore
from harness.run.kinds import run_kinds
from harness.run.process.zygote import ZygoteError
from harness.run.resume import resume
from tests.run.benches import BENCHES, KindBench

KINDS = sorted(run_kinds())
pytestmark = pytest.mark.parametrize("kind", KINDS)
Make = Callable[..., KindBench]


@pytest.fixture
def bench(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KindBench:
    return BENCHES[kind](tmp_path, monkeypatch)


def records(bench: KindBench) -> int:
    [listed] = list_runs(bench.results)
    assert listed.trials is not None
    return listed.trials


def status(bench: KindBench) -> str:
    return load_manifest(bench.path).status


def go_on(bench: KindBench, kind: str) -> None:
    resume(kind, bench.path, bench.listener())


def test_a_run_that_comes_to_its_end_is_finished_and_of_its_kind(bench: KindBench, kind: str) -> None:
    path = bench.begin()
    assert (load_manifest(path).kind, load_manifest(path).status) == (kind, "finished")
    assert load_manifest(path).finished_utc is not None
    assert records(bench) > 4


@pytest.mark.parametrize("ignored", ["", "results/\n", "results/*\n"])
def test_a_new_results_folder_that_git_does_not_ignore_is_told_once_with_the_remedy(
    bench: KindBench, ignored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = bench.results.parent
    subprocess.run(["git", "init", "--quiet"], cwd=repository, check=True)
    (repository / ".gitignore").write_text(ignored)
    bench.begin()
    hidden = bench.results / ".gitignore"
    told = f"harness: git does not ignore the new {bench.results}: echo '*' > {hidden}\n"
    assert capsys.readouterr().err.count(told) == (0 if ignored else 1)
    shutil.rmtree(bench.path)
    bench.begin()
    assert "git does not ignore" not in capsys.readouterr().err, "the folder was there"
    hidden.write_text("*\n")
    left = subprocess.run(["git", "status", "--porcelain"], cwd=repository, check=True, capture_output=True, text=True)
    assert "results" not in left.stdout


@pytest.mark.parametrize(("ahead_s", "behind"), [(3600, True), (2, False), (-3600, False)])
def test_a_run_of_a_clock_that_was_set_back_is_told_what_to_call_it_and_one_that_began_beside_another_is_not(
    bench: KindBench, capsys: pytest.CaptureFixture[str], ahead_s: int, behind: bool
) -> None:
    then = datetime.now(UTC) + timedelta(seconds=ahead_s)
    other, no_date = bench.results / f"{then:%Y%m%dT%H%M%SZ}-sweep-ab12", bench.results / "29991399T000000Z-mine"
    for folder in (other, no_date, bench.results / "29991231T000000Z-no-run"):
        folder.mkdir(parents=True)
    for run in (other, no_date):
        (run / "run.json").touch()
    name = bench.begin().name
    told = (
        f"harness: the clock is behind that of '{other.name}', which stays 'latest'; call this run by its id, {name}\n"
    )
    assert capsys.readouterr().err.count(told) == behind


def test_a_finished_run_is_not_begun_again(bench: KindBench, kind: str) -> None:
    bench.begin()
    before = {path.name: path.read_bytes() for path in bench.path.iterdir()}
    bench.no_process = AssertionError("it began to measure")
    go_on(bench, kind)
    assert {path.name: path.read_bytes() for path in bench.path.iterdir()} == before


def test_no_run_is_gone_on_with_under_another_python_but_one_whose_sides_tell_their_own(
    bench: KindBench, kind: str
) -> None:
    bench.stops_at = 3
    with pytest.raises(Interrupted):
        bench.begin()
    stored = json.loads((bench.path / "run.json").read_text())
    stored["machine"]["facts"]["python.version"] = "3.1"
    (bench.path / "run.json").write_text(json.dumps(stored))
    if kind == "ab":
        go_on(bench, kind)
        assert status(bench) == "finished"
        return
    before = records(bench)
    with pytest.raises(UsageError, match=r"versions are other than when the run was begun \(python 3\.1 → "):
        go_on(bench, kind)
    assert (status(bench), records(bench)) == ("interrupted", before)


def test_a_full_disk_leaves_an_interrupted_run_says_how_to_go_on_and_going_on_ends_it(
    bench: KindBench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fill_after(3, patch)
        with pytest.raises(StorageError) as caught:
            bench.begin()
    assert (status(bench), records(bench)) == ("interrupted", 3)
    assert f"go on with --resume {bench.path.name}" in str(caught.value)
    go_on(bench, kind)
    assert status(bench) == "finished"
    assert records(bench) > 4


def fill_after(lines: int, patch: pytest.MonkeyPatch) -> None:
    """No record but so many finds room on the disk."""
    from harness.record.files import append_line

    left = iter(range(lines))

    def append(descriptor: int, line: bytes) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append_line(descriptor, line)

    for module in ("store", "log"):
        patch.setattr(f"harness.record.{module}.append_line", append)


def test_a_disk_that_has_no_room_for_the_first_record_leaves_nothing_behind(
    bench: KindBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_after(0, monkeypatch)
    with pytest.raises(StorageError, match="No space left") as raised:
        bench.begin()
    assert not bench.results.exists()
    assert "--resume" not in str(raised.value), "there is nothing to go on with"


def test_an_error_of_no_other_remedy_says_where_the_records_are_and_how_to_go_on(
    bench: KindBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_after(3, ZygoteError("the preloaded process is gone"), patch)
        with pytest.raises(ZygoteError) as caught:
            bench.begin()
    verb, path = load_manifest(bench.path).what.kind.verb, bench.path
    assert str(caught.value).startswith("the preloaded process is gone; 3 ")
    assert str(caught.value).endswith(f" are kept in {path}; go on with: python -m harness {verb} --resume {path}")
    assert caught.value.exit_code == 4
    assert status(bench) == "interrupted"


def test_a_fault_of_the_harness_itself_does_not_leave_a_run_under_way(
    bench: KindBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_after(3, RuntimeError("a fault of ours"), monkeypatch)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        bench.begin()
    assert (status(bench), records(bench)) == ("interrupted", 3)


def fail_after(lines: int, error: Exception, patch: pytest.MonkeyPatch) -> None:
    """What is to be recorded after so many records raises `error` instead."""
    from harness.record.files import to_json

    left = iter(range(lines))

    def encoded(model: Any, *given: Any, **more: Any) -> bytes:
        if type(model).__name__ != "RunManifest" and next(left, None) is None:
            raise error
        return to_json(model, *given, **more)

    for module in ("store", "log"):
        patch.setattr(f"harness.record.{module}.to_json", encoded)


def test_ctrl_c_ends_the_store_once_and_says_how_to_go_on(
    bench: KindBench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    end = RunStore.end
    monkeypatch.setattr(RunStore, "end", lambda store, how: (ended.append(how), end(store, how)))
    bench.stops_at = 5
    with pytest.raises(Interrupted) as caught:
        bench.begin()
    assert ended == ["interrupted"]
    manifest, path = load_manifest(bench.path), bench.path
    assert str(caught.value) == (
        f"interrupted; {records(bench)} {manifest.what.kind.unit} are kept in {path}; "
        f"go on with: python -m harness {manifest.what.kind.verb} --resume {path}"
    )
    assert caught.value.exit_code == 130
    bench.stops_at = None
    go_on(bench, kind)
    assert ended == ["interrupted", "finished"]


def test_ctrl_c_before_anything_was_measured_leaves_a_run_that_can_go_on(bench: KindBench, kind: str) -> None:
    bench.no_process = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(Interrupted, match="interrupted; 0 "):
        bench.begin()
    assert status(bench) == "interrupted"
    bench.no_process = None
    go_on(bench, kind)
    assert status(bench) == "finished"


def test_what_never_began_since_the_process_cannot_start_leaves_nothing_behind(bench: KindBench) -> None:
    bench.no_process = ZygoteError("TensorFlow could not be imported")
    with pytest.raises(ZygoteError) as caught:
        bench.begin()
    assert str(caught.value) == "TensorFlow could not be imported"
    assert not bench.results.exists()


def test_what_never_began_since_the_users_own_cannot_be_loaded_leaves_nothing_behind(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = BENCHES[kind](tmp_path, monkeypatch, model="mine:model")
    bench.refuses = "preflight"
    with pytest.raises(UsageError, match="no room"):
        bench.begin()
    assert not bench.results.exists()
    assert {request.task for request in bench.zygote.spawned} == {"preflight"}


def test_a_run_that_is_gone_on_with_is_never_taken_back(bench: KindBench, kind: str) -> None:
    bench.no_process = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(Interrupted):
        bench.begin()
    bench.no_process = ZygoteError("TensorFlow could not be imported")
    with pytest.raises(ZygoteError, match=f"; 0 .* --resume {bench.path}$"):
        go_on(bench, kind)
    assert status(bench) == "interrupted"


def test_data_are_prepared_once_before_anything_else_and_again_when_it_goes_on(bench: KindBench, kind: str) -> None:
    bench.stops_at = 5
    with pytest.raises(Interrupted):
        bench.begin()
    for _ in range(2):
        tasks = [request.task for request in bench.zygote.spawned]
        assert tasks.index("prepare") == 0
        assert tasks.count("prepare") == 1
        assert bench.zygote.spawned[0].plant is None
        bench.stops_at = None
        bench.zygote.spawned.clear()
        if status(bench) != "finished":
            go_on(bench, kind)


def test_data_that_cannot_be_prepared_are_one_line_everywhere_and_no_trial_is_started(
    bench: KindBench, kind: str
) -> None:
    bench.refuses = "prepare"
    line = "data 'digits' is not available: no room"
    if kind == "sweep":  # its cells are unsupported, and the sweep goes on with those of other data
        bench.begin()
        found = [json.loads(text) for text in (bench.path / "trials.jsonl").read_text().splitlines()]
        assert {(one["status"], one["reason"]) for one in found} == {("unsupported", line)}
    else:
        with pytest.raises(HarnessError) as caught:
            bench.begin()
        assert str(caught.value) == line
        assert not bench.results.exists()
    assert {request.task for request in bench.zygote.spawned} == {"prepare"}


def test_no_other_kind_goes_on_with_a_run_and_each_names_its_verb(bench: KindBench, kind: str) -> None:
    path = bench.begin()
    verb = load_manifest(path).what.kind.verb
    for name in run_kinds():
        if name != kind:
            with pytest.raises(UsageError) as caught:
                resume(name, path, bench.listener())
            assert str(caught.value) == (
                f"--resume: '{path.name}' is a run of {verb}; go on with: python -m harness {verb} --resume {path}"
            )
