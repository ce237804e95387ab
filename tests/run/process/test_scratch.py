"""Temporary folders: gone with their process, even one that was killed, and never somebody else's."""

import fcntl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.run.process import scratch
from harness.run.process.scratch import MARK, SCRATCH_NAME, Scratch

HOLDS = """
import sys, time
from harness.run.process.scratch import Scratch
scratch = Scratch()
(scratch.path / "file").write_text("x")
print(scratch.path, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path.resolve()


@pytest.fixture
def other() -> "Iterator[tuple[subprocess.Popen[str], Path]]":
    """Another process that holds a folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_folder_is_removed_with_what_is_in_it(place: Path) -> None:
    scratch = Scratch()
    (scratch.path / "below").mkdir()
    (scratch.path / "below" / "file").write_text("x")
    assert scratch.path.parent == place
    scratch.close()
    scratch.close()
    assert list(place.iterdir()) == []


def test_the_folder_of_a_process_that_lives_stays(other: "tuple[subprocess.Popen[str], Path]") -> None:
    Scratch().close()
    assert (other[1] / "file").exists()


def test_the_folder_of_a_killed_process_goes_at_the_next_start(other: "tuple[subprocess.Popen[str], Path]") -> None:
    process, folder = other
    process.kill()
    process.wait()
    assert folder.exists()
    mine = Scratch()
    assert not folder.exists()
    assert mine.path.is_dir()
    mine.close()


def test_a_folder_that_could_not_be_removed_whole_is_removed_later(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Scratch()
    with monkeypatch.context() as dying:
        # a process that dies writes into it while it is removed: all goes but the folder
        dying.setattr(left._folder, "cleanup", lambda: (left.path / MARK).unlink())
        left.close()
    assert left.path.is_dir()
    with monkeypatch.context() as dying:
        dying.setattr(scratch.shutil, "rmtree", lambda folder, **_: (Path(folder) / MARK).unlink())
        scratch._remove_abandoned(place)
    assert left.path.is_dir()
    scratch.main()
    assert not left.path.exists()


def test_two_folders_of_one_process_leave_each_other_alone() -> None:
    one, two = Scratch(), Scratch()
    assert one.path.is_dir()
    assert two.path.is_dir()
    one.close()
    assert two.path.is_dir()
    two.close()


def test_what_only_looks_alike_stays(place: Path) -> None:
    names = ["harness-goals-x1", "harness-abc", "harness-1", "harness-12-", "other"]
    for name in names:
        (place / name).mkdir()
    target = place / "target"
    target.mkdir()
    (place / "harness-1-link").symlink_to(target)
    (place / "harness-1-file").write_text("x")
    Scratch().close()
    assert sorted(entry.name for entry in place.iterdir()) == sorted(
        [*names, "target", "harness-1-link", "harness-1-file"]
    )


@pytest.mark.parametrize("name", ["harness-12345-results", "harness-20261128-results"])
def test_a_folder_of_the_users_with_such_a_name_stays(place: Path, name: str) -> None:
    (place / name).mkdir()
    (place / name / "file").write_text("x")
    Scratch().close()
    scratch.main()
    assert (place / name / "file").read_text() == "x"


def test_no_other_process_takes_a_folder_for_abandoned_before_it_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def meanwhile(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            scratch._remove_abandoned(Path(tempfile.gettempdir()))
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", meanwhile)
    mine = Scratch()
    assert (mine.path / MARK).is_file()
    mine.close()


@pytest.mark.parametrize(
    ("host", "stays"),
    [
        (["boot b", "machine m here"], False),
        (["boot b", "machine of-a-container here"], False),
        (["boot earlier", "machine m here"], False),
        (["boot of-another", "machine m there"], True),
        (["", ""], True),
    ],
)
def test_only_what_a_process_of_this_host_has_left_is_removed(
    place: Path, monkeypatch: pytest.MonkeyPatch, host: list[str], stays: bool
) -> None:
    left = place / "harness-1-left"
    left.mkdir()
    (left / MARK).write_text("\n".join(host))
    monkeypatch.setattr(scratch, "_own_hosts", lambda: ["boot b", "machine m here"])
    Scratch().close()
    assert left.exists() == stays


def test_the_name_tells_a_person_which_process_it_was() -> None:
    scratch = Scratch()
    assert SCRATCH_NAME.fullmatch(scratch.path.name)
    scratch.close()


def test_a_command_waits_for_who_is_dying_and_removes_what_it_leaves(
    other: "tuple[subprocess.Popen[str], Path]",
) -> None:
    process, folder = other
    tidy = subprocess.Popen([sys.executable, "-m", "harness.run.process.scratch"])
    process.kill()
    process.wait()
    assert tidy.wait() == 0
    assert not folder.exists()


def test_the_command_leaves_alone_what_is_in_use(
    other: "tuple[subprocess.Popen[str], Path]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "DYING_S", 0.0)
    scratch.main()
    assert (other[1] / "file").exists()
