"""Write one run: its folder, its manifest, and a line for each trial as it ends.

A run folder is `run.json` (replaced as a whole), `trials.jsonl` (only ever appended) and, while a
process writes it, `.lock`.
"""

import contextlib
import os
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from harness.errors import StorageError
from harness.files import LARGEST_RECORDS, read_whole
from harness.record.files import (
    LOCK_NAME,
    UNFINISHED_S,
    FolderLock,
    append_line,
    is_setting,
    own_descriptor,
    reading,
    refuse_link,
    remove_unfinished,
    replace_own_file,
    storage_error,
    sync_folder,
    to_json,
)
from harness.record.kind import TRIALS_NAME
from harness.record.manifest import RunManifest
from harness.record.own_files import OWN_FILES, TRACES
from harness.record.packed import plain_file
from harness.record.reading import (
    MANIFEST_NAME,
    Run,
    RunListing,
    list_runs,
    load_manifest,
    load_run,
    load_trials,
    resolve_run,
    whole_length,
)
from harness.record.trial import TrialRecord

__all__ = ["Run", "RunListing", "RunStore", "list_runs", "load_run", "new_run_id", "resolve_run"]


def new_run_id(name: str) -> str:
    """`20261121T012345Z-NAME-a1b2`: sorts by time; the random end keeps apart two sweeps of one second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(2)}"


class RunStore:
    """The one writer of a run folder, from `create` or `open_for_resume` until `close`.

    What `append` has returned from is on disk. A kill at any instant loses at most the line that was
    being appended.
    """

    def __init__(self, path: Path, manifest: RunManifest, lock: FolderLock, trials: tuple[TrialRecord, ...]) -> None:
        """Use `create` or `open_for_resume`. Raises OSError when trials.jsonl cannot be opened, or is a link."""
        self.path = path
        self.manifest = manifest
        self.earlier_trials = trials
        """Records that were there when the run was opened for resuming."""
        self._lock = lock
        self._made: list[Path] = []
        self._descriptor: int | None = own_descriptor(path / TRIALS_NAME)

    @classmethod
    def create(cls, results: Path, manifest: RunManifest) -> Self:
        """Make `results/<run_id>/` with its manifest and no trials, and hold its lock.

        Raises StorageError when the place cannot be used; nothing new is then left there.
        """
        path = results / manifest.run_id
        if path.parent != results or path.name != manifest.run_id or path.name == "..":
            raise StorageError(f"run_id: '{manifest.run_id}' cannot be the name of a folder")
        data = to_json(manifest, indent=2) + b"\n"
        with contextlib.ExitStack() as undo:
            try:
                made = _make_folders(path)
                undo.callback(_undo, path, made, manifest.what.kind.log)
                lock = FolderLock(path)
                undo.callback(lock.release)
                replace_own_file(path / MANIFEST_NAME, data)
                store = cls(path, manifest, lock, ())
                store._made = made
                undo.callback(store.close)
                sync_folder(path)
                sync_folder(results)
            except OSError as error:
                raise storage_error("make the run folder", path, error) from None
            undo.pop_all()
        return store

    @classmethod
    def open_for_resume(cls, path: Path) -> Self:
        """Open a run that ended early, hold its lock, and mend what a kill tore or left half-written.

        `earlier_trials` then holds what was measured. Raises StorageError when another live process
        writes the run (it names the pid), or when the run cannot be read or written, or a file of its own is a link.
        """
        load_manifest(path)  # before the lock, which would otherwise be left in a folder that is no run
        try:
            lock = FolderLock(path)
        except OSError as error:
            raise storage_error("lock", path / LOCK_NAME, error, path) from None
        with contextlib.ExitStack() as undo:
            undo.callback(lock.release)
            _refuse_links(path)
            remove_unfinished(path, UNFINISHED_S)  # an export may be writing into the folder
            # Read under the lock: until then another process may have been writing.
            manifest = load_manifest(path)
            trials, _ = load_trials(plain_file(path / TRIALS_NAME), manifest.run_id, manifest.cells)
            try:
                store = cls(path, manifest, lock, tuple(trials))
                undo.callback(store.close)
                store._mend_the_end()
            except OSError as error:
                raise storage_error("resume", path / TRIALS_NAME, error, path) from None
            undo.pop_all()
        return store

    def append(self, record: TrialRecord) -> None:
        """Append one record durably. Raises StorageError; earlier lines are then intact."""
        descriptor = self._open_descriptor()
        if record.run_id != self.manifest.run_id:
            raise StorageError(f"run_id: '{record.run_id}' is not this run's ('{self.manifest.run_id}')")
        try:
            append_line(descriptor, to_json(record))
        except OSError as error:
            raise storage_error("append to", self.path / TRIALS_NAME, error, self.path) from None

    def update_manifest(self, manifest: RunManifest) -> None:
        """Replace `run.json` durably. Raises StorageError; the old manifest is then intact."""
        self._open_descriptor()
        try:
            replace_own_file(self.path / MANIFEST_NAME, to_json(manifest, indent=2) + b"\n")
        except OSError as error:
            raise storage_error("write", self.path / MANIFEST_NAME, error, self.path) from None
        self.manifest = manifest

    def end(self, status: Literal["finished", "interrupted"]) -> None:
        """Write in the manifest how and when the run ended. Raises StorageError."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.update_manifest(self.manifest.model_copy(update={"status": status, "finished_utc": now}))

    def close(self) -> None:
        """Let go of the run; harmless when done twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._lock.release()

    def discard(self) -> None:
        """Take back a run that was created and in which nothing was measured."""
        self.close()
        _undo(self.path, self._made, self.manifest.what.kind.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_descriptor(self) -> int:
        if self._descriptor is None:
            raise StorageError(f"'{self.path}' is closed")
        return self._descriptor

    def _mend_the_end(self) -> None:
        """Leave whole, terminated lines only, so that the next line starts a line. Raises OSError, StorageError."""
        descriptor = self._open_descriptor()
        with reading(self.path / TRIALS_NAME):
            data = read_whole(self.path / TRIALS_NAME, LARGEST_RECORDS)
        whole = whole_length(data)
        if whole < len(data):
            os.ftruncate(descriptor, whole)
            os.fsync(descriptor)
        elif data and not data.endswith(b"\n"):
            append_line(descriptor, b"")


def _refuse_links(folder: Path) -> None:
    """StorageError where one of a run's own files is a link, before hours are measured for one that is written last."""
    for file in (folder / name for name in sorted(OWN_FILES)):
        try:
            refuse_link(file)
        except OSError as error:
            raise storage_error("resume", file, error, folder) from None


def _make_folders(path: Path) -> list[Path]:
    """Make `path` and its missing parents; return those made, the outermost first. Raises OSError, StorageError.

    `path` itself must be new: a folder that exists belongs to another run.
    """
    made: list[Path] = []
    if is_setting(path):  # to make a folder there may set up something, such as a control group
        raise StorageError(
            f"cannot make '{path}': it is a folder of the kernel; choose another place with --results DIR"
        )
    missing = [folder for folder in reversed(path.parents) if not folder.is_dir()]
    try:
        for folder in missing:
            folder.mkdir(exist_ok=True)  # two sweeps may make the results folder at the same instant
            made.append(folder)
        path.mkdir()
        made.append(path)
    except OSError:
        with contextlib.suppress(OSError):
            for folder in reversed(made):
                folder.rmdir()
        raise
    return made


def _undo(path: Path, made: list[Path], log: str) -> None:
    """Take back what a failed `create` made, and the traces of trials without a record; a folder that another run uses
    meanwhile stays."""
    shutil.rmtree(path / TRACES, ignore_errors=True)
    with contextlib.suppress(OSError):
        for name in (MANIFEST_NAME, TRIALS_NAME, log, LOCK_NAME):
            (path / name).unlink(missing_ok=True)
        for folder in reversed(made):
            folder.rmdir()
