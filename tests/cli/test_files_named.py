"""Paths that a user names: what is no regular file is neither read without end nor replaced, and links are followed."""

import fcntl
import gzip
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.record import RunStore
from harness.record.files import replace_file
from tests.rights import as_no_root

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
REFERENCE = str(ROOT / "results" / "reference")
WRITING = (
    ("export", REFERENCE, "--format", "cells"),
    ("compare", REFERENCE, "--along", "cross_device_op"),
    ("report", REFERENCE),
    ("history", "--results", str(ROOT / "results"), "--cell", "central_storage ×3"),
)
READING = (
    ("sweep", "{}", "--dry-run"),
    ("faults", "{}", "--dry-run"),
    ("import", "{}"),
    ("ab", "{}"),
    ("worker", "--connect", "a:7000", "--token-file", "{}"),
)


@pytest.mark.parametrize("arguments", WRITING[:1] + WRITING[2:3], ids=lambda given: given[0])
def test_a_link_is_followed_and_what_it_names_gets_the_output(
    harness: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    target = tmp_path / "kept" / "target.html"
    target.parent.mkdir()
    target.write_text("before")
    (tmp_path / "link.html").symlink_to("kept/target.html")
    assert harness(*arguments, "--output", "link.html")[0] == 0
    assert (tmp_path / "link.html").is_symlink()
    assert len(target.read_text()) > 100
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "link.html", "target.html"]


def test_a_link_to_what_does_not_exist_yet_makes_it(harness: Run, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "new.csv")
    assert harness(*WRITING[0], "--output", "link")[0] == 0
    assert (tmp_path / "new.csv").is_file()


ODD = ("a", "a/below", "x" * 300 + ".html", "x" * 300 + "/below")
"""Names that lead nowhere: links in a circle, and more characters than a name may have."""


@pytest.mark.parametrize("name", ODD, ids=["circle", "in a circle", "long", "in a long one"])
@pytest.mark.parametrize(
    "arguments",
    [
        *((*verb, "--output") for verb in WRITING),
        *(("export", REFERENCE, "--format", form, "--output") for form in ("tensorboard", "asv", "json")),
        ("sweep", "--strategy", "none", "--replicas", "1", "--results"),
        ("list", "--results"),
        ("show", "latest", "--results"),
        ("explain",),
        ("show",),
        ("sweep", "--resume"),
        ("sweep", "--dry-run"),
    ],
    ids=lambda given: "-".join((given[0], *given[-2:][-1:])),
)
def test_a_name_that_leads_nowhere_is_an_error_of_one_line(
    harness: Run, tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    code, out, error = harness(*arguments, name)
    assert (code, out, error.count("\n")) == (4 if arguments[-1] in ("--output", "--results") else 2, "", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("x" * 300, "File name too long"), ("closed/x", "Permission denied")],
    ids=["long", "in somebody else's folder"],
)
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("prepare", "digits", "{}"), 4, "target: cannot write to '"),
        (("sweep", "--dry-run", "--data", "tfrecord:{}"), 2, "data: 'tfrecord:"),
        (("sweep", "--dry-run", "--step", "{}.py"), 2, "step: '"),
    ],
    ids=["prepare", "data", "step"],
)
def test_a_name_that_may_not_be_looked_at_is_an_error_of_one_line(
    harness: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, says: str, name: str, reason: str
) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with as_no_root():
        given, out, error = harness(*(word.format(name) for word in arguments))
    assert (given, out, error.count("\n")) == (code, "", 1)
    assert error.startswith(f"harness: {says}")
    assert reason in error
    assert [path.name for path in tmp_path.iterdir()] == ["closed"]


def test_files_are_prepared_in_no_place_while_none_may_be_temporary(
    harness: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    code, out, error = harness("prepare", "digits", "new")
    assert (code, out, error.count("\n")) == (4, "", 1)
    assert "TMPDIR: no folder for temporary files can be made: No such file or directory" in error
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_a_file_of_the_kernel_is_refused_by_every_verb(harness: Run) -> None:
    """Of a name that nobody can write to."""
    for arguments in (*WRITING, ("export", REFERENCE, "--format", "tensorboard")):
        code, out, error = harness(*arguments, "--output", "/proc/self/no-such-file")
        assert (code, out, error.count("\n")) == (4, "", 1)
        assert "'/proc/self/no-such-file': it is a file of the kernel; choose another place with --output" in error
    code, out, error = harness("sweep", "--strategy", "none", "--replicas", "1", "--results", "/proc/no-such-folder")
    assert (code, out, error.count("\n")) == (4, "", 1)
    assert "it is a folder of the kernel; choose another place with --results" in error
    with pytest.raises(OSError, match="it is a file of the kernel"):
        replace_file(Path("/proc/self/no-such-file"), b"")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--format", "csv", "--output", "unread"), "cannot write 'unread': it is a pipe that nothing reads; "),
        (("--format", "csv", "--output", "file/x.csv"), "cannot write 'file/x.csv': it is a file, no folder; "),
        (("--format", "csv", "--output", "file/x/y.csv"), "cannot write 'file/x/y.csv': 'file' is a file, no folder; "),
        (("--format", "csv", "--output", "dangling/x.csv"), "dangling/x.csv': it is a link that leads nowhere; "),
        (("--format", "tensorboard", "--output", "device"), "cannot write 'device': it is a device, no folder; name"),
        (("--format", "tensorboard"), "--output: tensorboard is a folder and cannot be printed; "),
    ],
)
def test_what_stands_where_an_output_should_go_is_said_in_words(
    harness: Run, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    os.mkfifo(tmp_path / "unread")
    (tmp_path / "file").touch()
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    code, _, error = harness("export", REFERENCE, *arguments)
    assert (code, error.count("\n")) == (2 if "--output" not in arguments else 4, 1)
    assert says in error


@pytest.mark.parametrize("arguments", WRITING, ids=lambda given: given[0])
def test_a_device_is_written_to_and_stays_one(harness: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    assert harness(*arguments, "--output", "/dev/null")[0] in (0, 1)
    assert Path("/dev/null").is_char_device()
    assert not Path("/dev/index.html").exists()
    code, _, error = harness(*arguments, "--output", "full")
    assert (code, error.count("\n")) == (4, 1)
    assert "No space left on device" in error
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_no_index_is_put_outside_a_folder_of_reports(harness: Run, tmp_path: Path) -> None:
    assert harness("report", REFERENCE, "--output", "page.html")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    "name",
    ["run.json", "trials.jsonl", "trials.jsonl.gz", "records.jsonl", "faults.jsonl", "validation.json", ".lock"],
)
@pytest.mark.parametrize("arguments", WRITING, ids=lambda given: given[0])
def test_a_file_that_a_run_keeps_is_not_replaced_by_any_verb_that_writes(
    harness: Run, tmp_path: Path, stored: Path, arguments: tuple[str, ...], name: str
) -> None:
    (tmp_path / "link").symlink_to(stored / name)
    (tmp_path / "folder").symlink_to(stored)
    before = contents(tmp_path)
    for output in (stored / name, tmp_path / "link", tmp_path / "folder" / name):
        code, out, error = harness(*arguments, "--output", str(output))
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert f"'{output}' is a file that a run keeps" in error
    assert contents(tmp_path) == before


def test_a_trace_of_a_run_is_not_replaced(harness: Run, stored: Path) -> None:
    trace = stored / "traces" / "cell" / "trial.xplane.pb"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(b"profile")
    assert harness(*WRITING[0], "--output", str(trace))[0] == 2
    assert trace.read_bytes() == b"profile"


def test_another_file_in_the_folder_of_a_run_and_its_names_elsewhere_are_free(
    harness: Run, tmp_path: Path, stored: Path
) -> None:
    for output in (stored / "cells.csv", tmp_path / "trials.jsonl", tmp_path / "traces" / "cells.csv"):
        for _ in range(2):
            assert harness(*WRITING[0], "--output", str(output))[0] == 0
        assert output.read_text().startswith("cell_id,")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("arguments", READING, ids=lambda given: given[0])
@pytest.mark.parametrize("what", ["device", "pipe", "large"])
def test_what_has_no_end_is_not_read(harness: Run, tmp_path: Path, arguments: tuple[str, ...], what: str) -> None:
    named = {"device": Path("/dev/zero"), "pipe": tmp_path / "pipe", "large": tmp_path / "large"}[what]
    if what == "pipe":
        os.mkfifo(named)
    if what == "large":
        named.touch()
        os.truncate(named, 2**40)
    code, out, error = harness(*(word.format(named) for word in arguments))
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert str(named) in error
    expected = {"device": "it is a device", "pipe": "it is a pipe", "large": "it is larger than"}
    assert expected[what] in error


@pytest.mark.parametrize("what", ["device", "large"])
@pytest.mark.parametrize("name", ["run.json", "trials.jsonl", "trials.jsonl.gz"])
@pytest.mark.parametrize("verb", ["show", "export"])
def test_a_record_that_has_no_end_is_not_read(harness: Run, stored: Path, verb: str, name: str, what: str) -> None:
    (stored / name.removesuffix(".gz")).unlink()
    if what == "device":
        (stored / name).symlink_to("/dev/zero")
    else:
        (stored / name).touch()
        os.truncate(stored / name, 2**40)
    code, _, error = harness(verb, str(stored))
    assert (code, error.count("\n")) == (4, 1)
    reason = {
        "device": "it is a device, no regular file; put a regular file there",
        "large": "it is larger than 2,097,152 KiB; name a smaller file, and of a run measure fewer trials or windows",
    }[what]
    for said in (error, harness("list")[1]):
        assert f"{name}': {reason}" in said


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_lock_that_is_no_file_holds_up_no_verb(harness: Run, stored: Path, what: str) -> None:
    lock = stored / ".lock"
    if what == "pipe":
        os.mkfifo(lock)
    else:
        lock.symlink_to("/dev/zero")
    for arguments in (("list",), ("show", "latest"), ("export", "latest"), ("report", "latest")):
        assert harness(*arguments)[0] == 0
    code, _, error = harness("sweep", "--resume", "latest")
    assert (code, error.count("\n")) == (4, 1)
    assert {"pipe": "it is a pipe, no regular file; ", "device": "remove that link"}[what] in error


def test_a_lock_that_is_a_link_is_refused_and_what_it_names_stays(harness: Run, stored: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("dear")
    (stored / ".lock").symlink_to(tmp_path / "theirs")
    code, _, error = harness("sweep", "--resume", "latest")
    assert (code, error.count("\n")) == (4, 1)
    assert ".lock': Too many levels of symbolic links; remove that link" in error
    assert (tmp_path / "theirs").read_text() == "dear"


def test_of_a_lock_no_more_is_read_than_a_process_writes_there(harness: Run, stored: Path) -> None:
    lock = stored / ".lock"
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.truncate(2**40)
        assert "running now" in harness("list")[1]
        with pytest.raises(StorageError, match=r"another process \(pid unknown\)"):
            RunStore.open_for_resume(stored)


@pytest.mark.parametrize("verb", ["show", "export", "compare", "report"])
def test_a_damaged_compressed_record_is_one_line_with_its_name(harness: Run, stored: Path, verb: str) -> None:
    packed = gzip.compress((stored / "trials.jsonl").read_bytes())
    (stored / "trials.jsonl").unlink()
    (stored / "trials.jsonl.gz").write_bytes(packed)
    runs = [str(stored), *([REFERENCE] if verb == "compare" else [])]
    assert "gz" not in harness(verb, *runs)[2]
    (stored / "trials.jsonl.gz").write_bytes(packed[:-9])
    code, _, error = harness(verb, *runs)
    assert (code, error.count("\n")) == (4, 1)
    assert "trials.jsonl.gz': it is a damaged gzip file" in error


def test_a_page_is_written_though_somebody_has_removed_the_working_folder(
    harness: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, error = harness("report", str(ROOT / "results" / "own"), "--output", str(tmp_path / "page.html"))
    assert (code, error) == (0, "")
    assert (tmp_path / "page.html").is_file()
