"""What is left of several ways of `prepare` where one is cut off at the end, and what is told of them then."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from harness.errors import HarnessError, Interrupted
from harness.record.files import replace_file
from harness.record.tfrecords import FEATURES
from harness.run.preparing import prepare as preparing
from harness.run.preparing import ways as by_ways
from harness.run.preparing.asked import AskedFiles, FilesListener
from harness.run.preparing.plan import TRIED_IN
from harness.run.preparing.prepare import _prepare, locked
from tests.run.preparing.written import Played, called, kept_in


def test_where_source_and_files_cannot_be_compared_that_is_said_and_what_each_way_took_is_told(timed: Any) -> None:
    made = timed.call(stops=HarnessError("prepare: a process ended"), local=20.0, dask=10.0)
    assert timed.told[-1] == "how fast source and files are read is not known: prepare: a process ended"
    assert list(made.preparation.ways) == ["local", "dask"]
    assert (made.preparation.source_read, made.preparation.files_read) == (None, None)
    assert kept_in(timed.files) == made


def test_one_way_too_is_told_where_source_and_files_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, told = FilesListener(), list[str]()
    monkeypatch.setattr(of, "said", told.append)
    played: Any = Played(tmp_path, 4, stops=HarnessError("prepare: a process ended"))
    features, wrote = _prepare(AskedFiles("my:examples", tmp_path, tmp_path, shards=4), played, of)
    assert wrote
    assert told == ["how fast source and files are read is not known: prepare: a process ended"]
    assert kept_in(tmp_path) == features


def test_what_is_read_of_source_and_files_is_told_though_the_disk_is_too_full_to_keep_it(
    timed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        if path == timed.files / FEATURES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace_file(path, data)

    monkeypatch.setattr(preparing, "replace_file", full)
    made = timed.call(local=20.0, dask=10.0)
    assert timed.told[-1] == (
        f"how fast source and files are read is not kept in '{timed.files / FEATURES}': "
        f"target: cannot write to '{timed.files}': No space left on device"
    )
    assert made.preparation.files_read.examples == 1
    kept = kept_in(timed.files).preparation
    assert kept is not None
    assert kept.ways == made.preparation.ways
    assert kept.files_read is None


@pytest.mark.parametrize("stops", [Interrupted("interrupted"), KeyboardInterrupt()], ids=["once", "twice"])
def test_who_interrupts_the_comparison_is_told_that_the_files_are_whole_and_where_the_figures_are(
    timed: Any, stops: BaseException
) -> None:
    with pytest.raises(Interrupted) as raised:
        timed.call(stops=stops, local=20.0, dask=10.0)
    assert str(raised.value) == (
        "interrupted while source and files were compared; every file is whole, and what writing them took is in "
        f"'{timed.files / FEATURES}'"
    )
    kept = kept_in(timed.files).preparation
    assert kept is not None
    assert list(kept.ways) == ["local", "dask"]


@pytest.mark.parametrize("whole", [0, 2, 4])
def test_one_way_goes_on_where_several_were_killed_while_their_last_files_were_moved(
    timed: Any, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    class Killed(BaseException):
        pass

    moved, remove, alive = list[str](), shutil.rmtree, [True]

    def dies() -> NoReturn:
        alive.clear()
        raise Killed

    def move(path: Path, to: Path) -> Path:
        if path.parent == timed.files / TRIED_IN and to.parent == timed.files:
            if len(moved) == whole:
                dies()
            moved.append(to.name)
        return path.rename(to)

    def write(path: Path, data: bytes) -> None:
        if path.name == FEATURES:
            dies()
        replace_file(path, data)

    with monkeypatch.context() as dying:
        dying.setattr(Path, "replace", move)
        dying.setattr(by_ways, "replace_file", write)
        dying.setattr(shutil, "rmtree", lambda *of, **how: remove(*of, **how) if alive else None)
        with pytest.raises(Killed):
            timed.call(local=20.0, dask=10.0)
    assert len(moved) == whole
    assert (timed.files / TRIED_IN).exists()
    with locked(timed.files):
        made = called(timed.files, most=4, source="digits")
    assert made.preparation is not None
    assert made.preparation.written == 8
    assert kept_in(timed.files) == made
