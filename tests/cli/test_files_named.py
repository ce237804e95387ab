"""Paths that a user names: what is no regular file is neither read without end nor replaced, and links are followed."""

import fcntl
import gzip
import os
import secrets
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.record import RunStore
from harness.record.files import replace_file
from tests.record.examples import manifest, trial

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


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with RunStore.create(tmp_path / "results", manifest()) as store:
        store.append(trial(0))
    return store.path


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
    reason = {"device": "it is a device, no regular file; ", "large": "it is larger than 2,097,152 KiB; "}[what]
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


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ("trials = 2\nreplicas = " + "[" * 5000 + "]" * 5000, "replicas"),
        ("replicas = [1]\nmodel = [\n" + "[" * 100_000, "model"),
        ("replicas" + ".a" * 48 + " = 1", "replicas"),
        ("x = " + "{a = " * 5000, "x"),
    ],
)
def test_a_spec_that_is_nested_too_deeply_is_one_line_with_file_and_key(
    harness: Run, tmp_path: Path, toml: str, key: str
) -> None:
    (tmp_path / "deep.toml").write_text(toml)
    for verb in ("sweep", "faults"):
        code, out, error = harness(verb, "deep.toml", "--dry-run")
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert "deep.toml" in error
        assert key in error
        assert len(error) < 500


@pytest.mark.parametrize(
    "toml",
    [
        "replicas" + ".a" * 300_000 + " = 1",
        "[replicas" + ".a" * 300_000 + "]",
        "strategy = {replicas" + ' . \'a\'."a\\"=."' * 49 + " = 1}",
    ],
)
def test_a_spec_with_a_key_of_many_parts_is_refused_before_it_is_parsed(
    harness: Run, tmp_path: Path, toml: str
) -> None:
    (tmp_path / "long.toml").write_text("trials = 2\n" + toml)
    code, out, error = harness("sweep", "long.toml", "--dry-run")
    assert (code, out) == (2, "")
    assert error == "harness: SPEC: 'long.toml': line 2: a key has more than 48 dots\n"


@pytest.mark.parametrize("value", ["0.1," * 1000, "'" + "." * 1000 + "'", "'" + "a" * 500_000 + "'"])
def test_values_and_long_words_are_no_keys_of_many_parts(harness: Run, tmp_path: Path, value: str) -> None:
    (tmp_path / "long.toml").write_text(f"replicas = [{value}]")
    assert "dots" not in harness("sweep", "long.toml", "--dry-run")[2]


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl"])
def test_a_record_that_is_nested_too_deeply_is_one_line_with_its_file(harness: Run, stored: Path, name: str) -> None:
    (stored / name).write_text('{"run_id": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    code, _, error = harness("show", str(stored))
    assert (code, error.count("\n")) == (4, 1)
    assert name in error


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        (f"replicas = [1]\ntrials = {DIGITS}", "trials"),
        (f"model = 'mlp'\nreplicas = [\n  1,\n  {'9_9' * 2500},\n]\ntrials = 3", "replicas"),
        (f"timeout = -{DIGITS}", "timeout"),
        *((f"{key} = 0x{'f' * 5000}", key) for key in ("seed", "timeout", "model", "strategy")),
    ],
)
def test_a_number_of_thousands_of_digits_in_a_spec_is_one_line_with_file_and_key(
    harness: Run, tmp_path: Path, toml: str, key: str
) -> None:
    (tmp_path / "long.toml").write_text(toml)
    for arguments in (("sweep", "--dry-run"), ("faults", "--dry-run"), ("ab", "--b", "replicas=2")):
        code, out, error = harness(arguments[0], "long.toml", *arguments[1:])
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert key in error
        assert len(error) < 500
    assert [path.name for path in tmp_path.iterdir()] == ["long.toml"]


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl"])
def test_a_record_with_a_number_of_thousands_of_digits_is_one_line_with_its_file_and_is_no_torn_end(
    harness: Run, stored: Path, name: str
) -> None:
    before = '{"run_id": ' + DIGITS + "}\n"
    (stored / name).write_text(before)
    for arguments in (("show", str(stored)), ("export", str(stored)), ("sweep", "--resume", str(stored))):
        code, out, error = harness(*arguments)
        assert (code, out, error.count("\n")) == (4, "", 1)
        assert name in error
        assert len(error) < 500
    assert (stored / name).read_text() == before


def test_a_value_of_thousands_of_characters_is_not_echoed_whole(harness: Run) -> None:
    for flag in ("--name", "--model", "--strategy", "--replicas", "--mesh", "--resume"):
        code, _, error = harness("sweep", flag, "a" * 5000)
        assert (code, error.count("\n")) == (2, 1)
        assert len(error) < 800
