"""Writing a run: what was appended stays, and only one process writes."""

import errno
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from harness.errors import StorageError
from harness.record import RunManifest, RunStore, list_runs, load_run, new_run_id
from harness.record.files import FolderLock, is_locked
from tests.record.examples import RUN_ID, failed_trial, manifest, trial

WRITER = """
import sys, time
from pathlib import Path
from harness.record import RunStore
from tests.record.examples import manifest, trial
store = RunStore.open_for_resume(Path(sys.argv[1])) if sys.argv[2] == "resume" else RunStore.create(
    Path(sys.argv[1]), manifest())
print("open", flush=True)
block = len(store.earlier_trials)
while sys.argv[3] == "append":
    store.append(trial(block, windows_count=20_000))
    print(block, flush=True)
    block += 1
time.sleep(60)
"""


def start_writer(path: Path, how: str, then: str) -> subprocess.Popen[str]:
    """A process that holds a run open; it has said `open` when this returns."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), how, then], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_a_new_run_reads_back_with_its_manifest_and_no_trials(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "a" / "results", manifest()) as store:
        assert store.path == tmp_path / "a" / "results" / RUN_ID
    run = load_run(store.path)
    assert run.manifest == manifest()
    assert (run.trials, run.torn, run.live) == ([], False, False)


def test_appended_records_read_back_equal_and_in_order(tmp_path: Path) -> None:
    records = [trial(0), failed_trial(1), trial(2)]
    with RunStore.create(tmp_path, manifest()) as store:
        for record in records:
            store.append(record)
        assert load_run(store.path).trials == records


def test_append_returns_only_after_the_line_was_synced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with RunStore.create(tmp_path, manifest()) as store:
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
        store.append(trial())
        assert synced == [(store.path / "trials.jsonl").stat().st_size]


def test_a_loss_that_is_not_a_number_is_written_as_null(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(failed_trial(final_loss=math.nan))
        store.append(failed_trial(final_loss=math.inf))
    text = (store.path / "trials.jsonl").read_text()
    assert [json.loads(line, parse_constant=pytest.fail)["final_loss"] for line in text.splitlines()] == [None, None]


def test_bytes_that_are_no_utf8_do_not_cost_the_record(tmp_path: Path) -> None:
    printed = b"bad \xff byte\nand a line".decode("utf-8", "surrogateescape")
    with RunStore.create(tmp_path, manifest(command=["sweep", printed])) as store:
        store.append(failed_trial(evidence=printed))
    run = load_run(store.path)
    assert run.trials[0].evidence == "bad \\udcff byte\nand a line"
    assert run.manifest.command[1] == "bad \\udcff byte\nand a line"


def test_a_record_of_another_run_is_refused(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store, pytest.raises(StorageError, match="run_id: 'other'"):
        store.append(trial(run_id="other"))
    assert load_run(store.path).trials == []


def test_a_closed_store_writes_nothing(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, manifest())
    store.close()
    store.close()
    with pytest.raises(StorageError, match="closed"):
        store.append(trial())
    with pytest.raises(StorageError, match="closed"):
        store.update_manifest(manifest(status="finished"))
    assert load_run(store.path).manifest.status == "running"


def test_an_updated_manifest_replaces_the_old_one_and_leaves_no_other_file(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.update_manifest(manifest(status="finished", finished_utc="2026-11-21T01:30:00Z"))
        assert store.manifest.status == "finished"
    assert load_run(store.path).manifest.status == "finished"
    assert sorted(path.name for path in store.path.iterdir()) == ["run.json", "trials.jsonl"]


def test_who_reads_a_manifest_while_it_is_updated_sees_the_old_one_whole(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store, (store.path / "run.json").open("rb") as reader:
        start = reader.read(100)
        store.update_manifest(manifest(status="interrupted", command=["x" * 5000]))
        seen = RunManifest.model_validate_json(start + reader.read())
    assert seen == manifest()


def test_a_run_in_which_nothing_was_measured_is_taken_back_with_the_traces_of_its_trials(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "results", manifest()) as store:
        trace = store.path / "traces" / "cell-block-0-attempt-1" / "trial.xplane.pb"
        trace.parent.mkdir(parents=True)
        trace.write_bytes(b"profile")
        store.discard()
    assert list(tmp_path.iterdir()) == []


def test_run_ids_of_one_second_differ_and_carry_the_name() -> None:
    ids = {new_run_id("weak-scaling") for _ in range(20)}
    assert len(ids) > 15
    assert all(run_id[8] == "T" and "Z-weak-scaling-" in run_id for run_id in ids)


def test_two_sweeps_at_once_write_into_one_results_folder(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest("first")) as one, RunStore.create(tmp_path, manifest("second")) as two:
        one.append(trial(0, "first"))
        two.append(trial(0, "second"))
        one.append(trial(1, "first"))
        assert [len(load_run(store.path).trials) for store in (one, two)] == [2, 1]


def test_a_run_id_that_is_taken_is_refused_and_the_earlier_run_is_untouched(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(trial())
    with pytest.raises(StorageError, match="File exists"):
        RunStore.create(tmp_path, manifest())
    assert load_run(store.path).trials == [trial()]


def test_a_run_that_another_process_writes_cannot_be_resumed_and_the_error_names_its_pid(tmp_path: Path) -> None:
    writer = start_writer(tmp_path, "create", "sleep")
    try:
        with pytest.raises(StorageError, match=rf"pid {writer.pid}\)"):
            RunStore.open_for_resume(tmp_path / RUN_ID)
        assert load_run(tmp_path / RUN_ID).live
    finally:
        writer.kill()
        writer.wait()
    assert not load_run(tmp_path / RUN_ID).live
    RunStore.open_for_resume(tmp_path / RUN_ID).close()


def test_asking_whether_a_run_is_live_does_not_unlock_it(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        assert load_run(store.path).live
        assert load_run(store.path).live
        with pytest.raises(StorageError, match=f"pid {os.getpid()}"):
            RunStore.open_for_resume(store.path)
    assert not load_run(store.path).live


def test_resuming_gives_the_earlier_trials_and_appends_after_them(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(trial(0))
    with RunStore.open_for_resume(store.path) as resumed:
        assert resumed.earlier_trials == (trial(0),)
        assert resumed.manifest == manifest()
        resumed.append(trial(1))
    assert [record.block for record in load_run(store.path).trials] == [0, 1]


@pytest.mark.parametrize("tail", [b'{"schema_version":1,"run_', b"\0" * 700, b"\0" * 80 + b"\n", b'{"a": "\xc3'])
def test_a_torn_end_is_left_out_by_readers_and_cut_off_on_resume(tmp_path: Path, tail: bytes) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(trial(0))
    file = store.path / "trials.jsonl"
    file.write_bytes(file.read_bytes() + tail)
    run = load_run(store.path)
    assert (len(run.trials), run.torn) == (1, True)
    with RunStore.open_for_resume(store.path) as resumed:
        resumed.append(trial(1))
    run = load_run(store.path)
    assert ([record.block for record in run.trials], run.torn) == ([0, 1], False)


def test_a_last_line_that_only_lacks_its_newline_is_kept(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(trial(0))
    file = store.path / "trials.jsonl"
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert (len(load_run(store.path).trials), load_run(store.path).torn) == (1, False)
    with RunStore.open_for_resume(store.path) as resumed:
        resumed.append(trial(1))
    assert [record.block for record in load_run(store.path).trials] == [0, 1]


@pytest.mark.parametrize("name", ["trials.jsonl", "run.json", "validation.json", "faults.jsonl", "records.jsonl"])
@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_a_run_with_a_link_among_its_own_files_is_not_written_and_what_the_link_names_stays(
    tmp_path: Path, name: str, there: bool
) -> None:
    """Its end would be taken for a torn line and cut off, and records appended to it."""
    with RunStore.create(tmp_path / "results", manifest()) as store:
        store.append(trial(0))
    theirs, own = tmp_path / "theirs", store.path / name
    kept = own.read_bytes() if own.exists() else b""
    if name != "run.json":
        kept += b'{"torn'
    if there:
        theirs.write_bytes(kept)
    own.unlink(missing_ok=True)
    own.symlink_to(theirs)
    with pytest.raises(StorageError) as caught:
        RunStore.open_for_resume(store.path)
    if there or name != "run.json":
        remedy = f"it is a link; remove that link, then go on with --resume {RUN_ID}"
        assert str(caught.value) == f"cannot resume '{own}': {remedy}"
        assert not is_locked(store.path)
    assert theirs.exists() == there
    assert not there or theirs.read_bytes() == kept


def test_a_link_that_is_put_in_the_place_of_a_manifest_meanwhile_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("dear")
    with RunStore.create(tmp_path / "results", manifest()) as store:
        (store.path / "run.json").unlink()
        (store.path / "run.json").symlink_to(theirs)
        with pytest.raises(StorageError, match=r"cannot write .*run\.json': it is a link; remove that link, then"):
            store.end("finished")
    assert theirs.read_text() == "dear"


def test_a_run_may_be_read_through_links_and_its_folder_may_be_one(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "elsewhere", manifest()) as store:
        store.append(trial(0))
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in ("run.json", "trials.jsonl"):
        (linked / name).symlink_to(store.path / name)
    assert load_run(linked).trials == [trial(0)]
    (tmp_path / "folder").symlink_to(store.path)
    with RunStore.open_for_resume(tmp_path / "folder") as resumed:
        resumed.append(trial(1))
    assert len(load_run(store.path).trials) == 2


def test_a_writer_killed_again_and_again_loses_no_line_that_append_returned_from(tmp_path: Path) -> None:
    """Lines of 0.5 MB, so that many of the kills fall inside a write."""
    RunStore.create(tmp_path, manifest()).close()
    path = tmp_path / RUN_ID
    promised = 0
    for attempt in range(8):
        writer = start_writer(path, "resume", "append")
        assert writer.stdout is not None
        writer.stdout.readline()
        promised += 1
        # Different instants of the write that follows; the sleep is in the writer's own time scale.
        signal.sigtimedwait([], 0.0013 * attempt)
        writer.send_signal(signal.SIGKILL)
        promised += len(writer.stdout.readlines())
        writer.wait()
        blocks = [record.block for record in load_run(path).trials]
        assert blocks == list(range(len(blocks)))
        assert promised <= len(blocks) <= promised + 1
        promised = len(blocks)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_run_is_made_and_gone_on_with_where_a_file_system_has_no_locks_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def no_locks(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(trial(0))
    with RunStore.open_for_resume(store.path) as resumed:
        resumed.append(trial(1))
        assert is_locked(store.path), "this process lives"
        (store.path / ".lock").write_text(f"{2**30}\n")
        assert not is_locked(store.path), "one that was killed does not"
    assert len(load_run(store.path).trials) == 2
    assert not (store.path / ".lock").exists()
    said = "has no locks: see to it that no other process writes there meanwhile"
    assert capsys.readouterr().err == f"harness: the file system of '{store.path}' {said}\n"


def test_a_lock_that_is_refused_for_another_reason_is_told_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(StorageError, match=r"^cannot make the run folder .*: Input/output error; check the disk"):
        RunStore.create(tmp_path, manifest())


def test_files_that_a_killed_process_left_half_written_are_removed_when_the_run_is_gone_on_with(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        (store.path / ".0123456789abcdef.tmp").write_text("{")
        (store.path / ".mine.tmp").write_text("dear")
        for left in store.path.glob(".*.tmp"):
            os.utime(left, (0, 0))
        (store.path / ".fedcba9876543210.tmp").write_text("somebody who exports into the folder writes it now")
    with RunStore.open_for_resume(store.path):
        assert {path.name for path in store.path.glob(".*.tmp")} == {".mine.tmp", ".fedcba9876543210.tmp"}


def test_a_folder_of_a_run_that_was_killed_while_it_was_begun_is_named_with_the_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "a run"
    folder.mkdir()
    lock = FolderLock(folder)
    (folder / ".0123456789abcdef.tmp").write_text("{")
    [row] = list_runs(tmp_path)
    assert "is not a run" in str(row.problem), "it is being begun"
    lock.release()
    (folder / ".lock").write_text("1\n")
    [row] = list_runs(tmp_path)
    assert row.problem == f"'{folder}' was begun and killed before it held anything; rm -r '{folder}'"
    with pytest.raises(StorageError, match="was begun and killed"):
        RunStore.open_for_resume(folder)
    (folder / "theirs").write_text("dear")
    [row] = list_runs(tmp_path)
    assert "is not a run" in str(row.problem)
