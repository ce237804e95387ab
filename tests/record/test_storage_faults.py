"""Places that cannot be used and disks that fill up: one clear line, and nothing lost."""

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.record import RunStore, TrialRecord, load_run
from tests.disks import disk_of
from tests.record.examples import manifest, trial


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def _error_of_append(store: RunStore, record: TrialRecord) -> StorageError | None:
    try:
        store.append(record)
    except StorageError as error:
        return error
    return None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB; only root can mount one."""
    with disk_of("128k", tmp_path) as disk:
        yield disk


def test_a_disk_that_fills_up_keeps_every_earlier_line_whole(small_disk: Path) -> None:
    with RunStore.create(small_disk, manifest()) as store:
        kept = 0
        caught = None
        while caught is None:
            caught = _error_of_append(store, trial(kept, windows_count=300))
            kept += caught is None
        assert str(caught) == (
            f"cannot append to '{store.path}/trials.jsonl': No space left on device; "
            f"free some space, then go on with --resume {store.path.name}"
        )
        run = load_run(store.path)
        assert ([record.block for record in run.trials], run.torn) == (list(range(kept)), False)
        assert kept > 3

        _mount("-o", "remount,size=1m", str(small_disk))
        store.append(trial(kept))
        assert len(load_run(store.path).trials) == kept + 1


def test_a_full_disk_keeps_the_old_manifest(small_disk: Path) -> None:
    with RunStore.create(small_disk, manifest()) as store:
        (small_disk / "filler").write_bytes(b"x" * (small_disk_free(small_disk) - 100))
        with pytest.raises(StorageError, match=r"cannot write .*run\.json': No space left on device; free some"):
            store.update_manifest(manifest(command=["x" * 9000]))
        assert load_run(store.path).manifest == manifest()
        assert sorted(path.name for path in store.path.iterdir()) == [".lock", "run.json", "trials.jsonl"]


def small_disk_free(folder: Path) -> int:
    """Bytes left on the file system of `folder`."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def test_a_run_that_does_not_fit_leaves_nothing_behind(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * small_disk_free(small_disk))
    with pytest.raises(StorageError, match="No space left on device"):
        RunStore.create(small_disk / "results", manifest())
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_read_only_place_is_refused(small_disk: Path) -> None:
    RunStore.create(small_disk, manifest()).close()
    _mount("-o", "remount,ro", str(small_disk))
    with pytest.raises(
        StorageError, match="Read-only file system; make it writable, or choose another place with --results"
    ):
        RunStore.create(small_disk, manifest("another"))
    with pytest.raises(
        StorageError, match=r"cannot lock .*\.lock': Read-only file system; make it writable, then go on with --resume"
    ):
        RunStore.open_for_resume(small_disk / manifest().run_id)
    assert load_run(small_disk / manifest().run_id).trials == []


def test_a_limit_on_the_size_of_files_keeps_every_earlier_line_whole(tmp_path: Path) -> None:
    """Needs no root, unlike a full disk, and takes the same path: a write that stops half-way."""
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(trial(0))
        size = (store.path / "trials.jsonl").stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
        try:
            with pytest.raises(StorageError, match="File too large; raise the limit"):
                store.append(trial(1))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (store.path / "trials.jsonl").stat().st_size == size
        store.append(trial(1))
    assert [record.block for record in load_run(store.path).trials] == [0, 1]


def test_an_interruption_between_write_and_sync_takes_the_line_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_fsync = os.fsync
    calls = []

    def interrupted_once(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real_fsync(descriptor)

    with RunStore.create(tmp_path, manifest()) as store:
        monkeypatch.setattr(os, "fsync", interrupted_once)
        with pytest.raises(KeyboardInterrupt):
            store.append(trial(0))
        store.append(trial(0))
    assert len(load_run(store.path).trials) == 1


@pytest.mark.parametrize("results", ["file", "file/below"])
def test_a_file_in_the_way_is_named_and_stays(tmp_path: Path, results: str) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StorageError) as caught:
        RunStore.create(tmp_path / results, manifest())
    message = str(caught.value)
    assert str(tmp_path / results) in message
    assert "move" in message
    assert "--results" in message
    assert "\n" not in message
    assert caught.value.exit_code == 4
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(
            StorageError, match="Permission denied; get permission for it, or choose another place with --results"
        ):
            RunStore.create(tmp_path / "results", manifest())
    finally:
        tmp_path.chmod(0o700)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "../outside", "/abs"])
def test_a_run_id_that_is_no_folder_name_writes_nothing(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(StorageError, match="run_id"):
        RunStore.create(tmp_path / "results", manifest(run_id))
    assert list(tmp_path.iterdir()) == []
