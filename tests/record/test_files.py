"""What is read of a file and what may be written to, told by the file alone."""

import errno
import os
import secrets
import socket
import stat
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.files import END_OF_LOG, LARGEST_RECORDS, LONGEST_LOG, cut_log, new_log, read_whole
from harness.record import RunStore, load_run
from harness.record.fault_log import load_faults
from harness.record.files import is_setting, reading, replace_file, storage_error
from tests.record.examples import manifest, trial

KERNEL = (
    "/proc/sys/kernel/core_pattern",
    "/proc/self/oom_score_adj",
    "/proc/thread-self/comm",
    "/proc/1/fd/1",
    "/proc/self/fd/../comm",
    "/proc/self/exe",
    "/proc/self/cwd",
    "/sys/kernel/mm/ksm/run",
    "/sys/fs/cgroup/new/cells.csv",
)


@pytest.mark.parametrize("name", KERNEL)
def test_a_file_of_the_kernel_is_no_place_for_an_output_however_it_is_named(tmp_path: Path, name: str) -> None:
    """Only the question is asked: nothing may be written there, not even by a test that fails."""
    (tmp_path / "link").symlink_to(name)
    (tmp_path / "folder").symlink_to(Path(name).parent)
    for path in (Path(name), tmp_path / "link", tmp_path / "folder" / Path(name).name):
        assert is_setting(path)


def test_what_this_process_has_open_may_be_an_output_and_so_may_what_proc_only_leads_to(tmp_path: Path) -> None:
    for name in ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1", "/dev/null", "/proc/self/cwd/cells.csv"):
        assert not is_setting(Path(name))
    assert not is_setting(tmp_path / "proc" / "cells.csv")


def test_of_a_small_file_no_more_memory_is_taken_than_it_holds(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b"{}" * 1000)
    tracemalloc.start()
    try:
        assert read_whole(tmp_path / "run.json", LARGEST_RECORDS) == b"{}" * 1000
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_file_that_tells_no_size_is_read_to_its_end_and_refused_where_that_is_too_far() -> None:
    maps = Path("/proc/self/maps")
    assert maps.stat().st_size == 0
    assert read_whole(maps, LARGEST_RECORDS).endswith(b"\n")
    assert len(read_whole(maps, LARGEST_RECORDS)) > 5000
    with pytest.raises(OSError, match="it is larger than 4 KiB"):
        read_whole(maps, 4096)


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl", "faults.jsonl"])
def test_records_that_memory_has_no_room_for_are_one_line_with_file_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(trial(0))
    (store.path / "faults.jsonl").touch()
    read: dict[str, Callable[[Path], object]] = {"faults.jsonl": load_faults}

    def no_room(*_: object) -> bytes:
        raise MemoryError

    where = {"run.json": "reading.read_whole", "trials.jsonl": "reading.opened_records"}
    monkeypatch.setattr(f"harness.record.{where.get(name, 'log.read_records')}", no_room)
    with pytest.raises(StorageError) as caught:
        read.get(name, load_run)(store.path)
    assert str(caught.value).startswith(f"cannot read '{store.path / name}': there is not enough memory for what it")


@pytest.mark.parametrize("what", ["file", "dangling"])
def test_what_stands_where_a_folder_of_results_should_be_is_said_in_words(tmp_path: Path, what: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    said = {"file": "is a file, no folder", "dangling": "is a link that leads nowhere"}[what]
    with pytest.raises(StorageError, match=rf"'{tmp_path / what}' {said}; move "):
        RunStore.create(tmp_path / what, manifest())


def test_a_pipe_is_written_to_where_somebody_reads_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="No such device or address"):
        replace_file(pipe, b"data")
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:  # noqa: PTH123
        writer = threading.Thread(target=replace_file, args=(pipe, b"data"))
        writer.start()
        writer.join()
        assert reader.read() == b"data"
    assert pipe.is_fifo()


def test_an_open_file_of_the_shell_is_added_to_and_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"before\n")
    with file.open("ab") as opened:
        replace_file(Path(f"/dev/fd/{opened.fileno()}"), b"after\n")
    assert file.read_bytes() == b"before\nafter\n"


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="No such device or address"):
            replace_file(tmp_path / "s", b"data")
    assert (tmp_path / "s").is_socket()


@pytest.mark.parametrize("what", ["file", "pipe", "link"])
def test_what_lies_beside_an_output_is_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Even what has the very name of the temporary file."""
    beside = tmp_path / ".taken.tmp"
    if what == "file":
        beside.write_text("precious")
    elif what == "pipe":
        os.mkfifo(beside)
    else:
        beside.symlink_to("nowhere")
    before = beside.lstat()
    with monkeypatch.context() as patched:
        patched.setattr(secrets, "token_hex", lambda _: "taken")
        with pytest.raises(FileExistsError):
            replace_file(tmp_path / "cells.csv", b"data")
    replace_file(tmp_path / "cells.csv", b"data")
    assert (beside.lstat().st_ino, beside.lstat().st_size) == (before.st_ino, before.st_size)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".taken.tmp", "cells.csv"]


@pytest.mark.parametrize("mode", [0o600, 0o666, 0o640])
def test_an_output_has_the_mode_of_what_it_replaces(tmp_path: Path, mode: int) -> None:
    output = tmp_path / "cells.csv"
    output.touch()
    output.chmod(mode)
    replace_file(output, b"data")
    assert stat.S_IMODE(output.stat().st_mode) == mode


def test_an_output_may_have_any_name_that_the_disk_takes(tmp_path: Path) -> None:
    replace_file(tmp_path / ("a" * 255), b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["a" * 255]


def test_another_place_is_a_remedy_of_what_cannot_be_written_and_not_of_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught, reading(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")
    assert str(caught.value) == f"cannot read '{tmp_path}': Permission denied; get permission for it"
    assert str(storage_error("write", tmp_path, OSError(errno.EACCES, "Permission denied"))).endswith("--results DIR")


def test_of_a_log_that_is_too_long_the_middle_is_left_out_and_who_appends_to_it_goes_on(tmp_path: Path) -> None:
    with new_log(tmp_path / "log") as log:
        log.write(b"first\n" + b"." * LONGEST_LOG)
        log.flush()
        gone = cut_log(log.fileno())
        log.write(b"\nlast\n")
        log.flush()
        kept = (tmp_path / "log").read_bytes()
        assert kept.startswith(b"first\n.")
        assert f"\n[harness: {gone:,} bytes of this log are left out]\n".encode() in kept
        assert kept.endswith(b".\nlast\n")
        assert kept.count(b".") == LONGEST_LOG - gone
        assert cut_log(log.fileno(), gone) == gone
        assert (tmp_path / "log").read_bytes() == kept
        log.write(b"," * LONGEST_LOG)
        log.flush()
        assert cut_log(log.fileno(), gone) > gone + LONGEST_LOG - END_OF_LOG
        assert (tmp_path / "log").read_bytes().count(b"are left out") == 1


def test_the_end_of_a_log_is_kept_on_a_disk_that_is_full_when_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with new_log(tmp_path / "log") as log:
        log.write(b"." * LONGEST_LOG + b"\nlast\n")
        log.flush()
        monkeypatch.setattr(os, "write", full)  # nothing has room behind the end
        gone = cut_log(log.fileno())
        assert gone > 0
        assert (tmp_path / "log").read_bytes().endswith(b".\nlast\n")
        assert (tmp_path / "log").stat().st_size < END_OF_LOG


def test_a_log_that_cannot_be_cut_is_as_it_was_and_nothing_of_it_counts_as_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with new_log(tmp_path / "log") as log:
        log.write(b"." * (LONGEST_LOG + 1))
        log.flush()
        monkeypatch.setattr(os, "pwrite", full)
        assert cut_log(log.fileno(), 5) == 5
        assert (tmp_path / "log").read_bytes() == b"." * (LONGEST_LOG + 1)


def test_a_log_that_is_no_longer_than_is_kept_is_kept_whole(tmp_path: Path) -> None:
    with new_log(tmp_path / "log") as log:
        log.write(b"." * LONGEST_LOG)
        log.flush()
        assert cut_log(log.fileno()) == 0
        assert (tmp_path / "log").read_bytes() == b"." * LONGEST_LOG
