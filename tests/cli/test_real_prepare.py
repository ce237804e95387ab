"""`prepare` by real processes: the same bytes by any number of them and by any way, and nothing lost where one ends."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest

from harness.protocol.preparing import SIGN
from harness.run.preparing import ways
from tests.cli.prepared import features, with_numbers
from tests.cli.real import run, start, still_alive
from tests.disks import disk_of

pytestmark = pytest.mark.slow

MODULE = """
    import os, time
    import numpy as np
    import tensorflow as tf

    def examples():
        def made():
            for k in range(24):
                time.sleep(float(os.environ.get("SLEEP_S", "0")))
                yield np.full(3, k, np.float32), np.int64(k % 3)
        spec = (tf.TensorSpec((3,), tf.float32), tf.TensorSpec((), tf.int64))
        counted = tf.data.experimental.assert_cardinality(24)
        return tf.data.Dataset.from_generator(made, output_signature=spec).apply(counted)
"""
SOURCE = ("prepare", "own_numbers:examples")
FILES = 8
NOW = ("--shards", str(FILES), "--processes", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the module `own_numbers`."""
    return with_numbers(tmp_path_factory.mktemp("prepare"), MODULE)


@pytest.fixture(scope="module")
def numbers(folder: Path) -> dict[str, Any]:
    """The features.json of files that one process has written."""
    done = run(*SOURCE, "one", "--shards", str(FILES), "--processes", "1", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "where reading is the limit" in done.stdout or "reading: source" in done.stdout
    return features(folder / "one")


def digest_of(target: Path) -> str:
    """As a person comes to it."""
    command = "sha256sum *.tfrecord* | sha256sum"
    return subprocess.run(command, shell=True, cwd=target, capture_output=True, text=True, check=True).stdout.split()[0]


def names(target: Path) -> set[str]:
    return {path.name for path in target.iterdir()}


def must_be_as_by_one_process(target: Path, numbers: dict[str, Any], by: str, processes: int) -> None:
    """The same files, of which each example is counted once, however often somebody was stopped."""
    found = features(target)
    assert found["digest"] == numbers["digest"] == digest_of(target)
    assert names(target) == {"features.json", *(shard["file"] for shard in found["shards"])}
    taken = found["preparation"]
    assert (taken["by"], taken["processes"], taken["written"]) == (by, processes, 24)
    assert taken["bytes_in"] == 24 * (12 + 8)
    assert taken["bytes_out"] == sum(shard["bytes"] for shard in found["shards"])
    assert taken["cpu_s"] > 0


@pytest.mark.parametrize(("by", "processes"), [("local", 3), ("beam", 2)])
def test_the_bytes_are_the_same_by_any_number_of_processes_and_whoever_runs_them(
    folder: Path, numbers: dict[str, Any], by: str, processes: int
) -> None:
    done = run(*SOURCE, by, "--shards", str(FILES), "--processes", str(processes), "--with", by, folder=folder)
    assert done.returncode == 0, done.stderr
    must_be_as_by_one_process(folder / by, numbers, by, processes)


@pytest.fixture
def one_turn_each() -> Iterator[None]:
    """What several turns come to is seen by players of the ways (`tests.run.preparing`)."""
    with mock.patch.object(ways, "TURNS_EACH", 1):
        yield


@pytest.mark.usefixtures("one_turn_each")
def test_several_ways_write_in_turn_and_leave_the_files_of_each(folder: Path, numbers: dict[str, Any]) -> None:
    asked = ("--with", "local,dask", "--shards", str(FILES), "--processes", "2")
    with tempfile.TemporaryDirectory() as temporary, mock.patch.dict(os.environ, TMPDIR=temporary):
        done = run(*SOURCE, "each", *asked, folder=folder)
        assert not any(Path(temporary).iterdir())
    assert done.returncode == 0, done.stderr
    found = features(folder / "each")
    assert found["digest"] == numbers["digest"] == digest_of(folder / "each")
    assert names(folder / "each") == {"features.json", *(shard["file"] for shard in found["shards"])}
    taken = found["preparation"]
    assert list(taken["ways"]) == ["local", "dask"]
    assert all(len(cost["wall_s"]) == len(cost["cpu_s"]) == 1 for cost in taken["ways"].values())
    for line in (r"(local|dask): \d+\.\d s \[.* – .*\], .* s of processor time", "which takes the least time: "):
        assert re.search(f"^{line}", done.stdout, re.MULTILINE), done.stdout
    assert "reading: source " in done.stdout
    again = run(*SOURCE, "each", *asked, folder=folder)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "several ways of --with are timed by writing all of them; name a new folder" in again.stderr


def begun(folder: Path, target: str, *arguments: str, **more: str) -> "subprocess.Popen[str]":
    """A slow `prepare` that has written two files."""
    process = start(*SOURCE, target, *NOW, *arguments, folder=folder, SLEEP_S="0.2", **more)
    deadline = time.monotonic() + 240
    while len(list((folder / target).glob("*.tfrecord"))) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_one_that_is_killed_leaves_no_process_and_the_next_goes_on_with_what_is_missing(
    folder: Path, numbers: dict[str, Any]
) -> None:
    process = begun(folder, "killed", "--with", "dask")
    second = run(*SOURCE, "killed", *NOW, folder=folder)
    assert (second.returncode, second.stderr.count("\n")) == (4, 1)
    assert "is being written by another process (pid " in second.stderr
    others = psutil.Process(process.pid).children(recursive=True)
    servers = [one for one in others if "multiprocessing.forkserver" in " ".join(one.cmdline())]  # and its forks
    forks = [children for children in (one.children() for one in servers) if children]
    signs = [*Path(tempfile.gettempdir()).glob(f"harness-{process.pid}-*/{SIGN.format('*', '*')}")]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [len(one) for one in forks] == [2], "Dask's processes are forks of one"
    assert signs, "they tell how far they are"
    assert still_alive(others) == []
    [before, *_] = sorted((folder / "killed").glob("*.tfrecord"))
    taken = json.loads((folder / "killed" / ".plan.json").read_text())
    assert min(taken["wall_s"], taken["cpu_s"]) > 0
    written = before.stat().st_mtime_ns
    other = run(*SOURCE, "killed", "--shards", "5", folder=folder)
    assert (other.returncode, other.stderr.count("\n")) == (2, 1)
    assert "holds another data set: its shards is 8, and 5 is asked for" in other.stderr
    done = run(*SOURCE, "killed", *NOW, "--with", "dask", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "of them whole already" in done.stderr
    must_be_as_by_one_process(folder / "killed", numbers, "dask", 2)
    assert before.stat().st_mtime_ns == written
    assert features(folder / "killed")["preparation"]["wall_s"] > taken["wall_s"]


def test_ctrl_c_says_how_much_is_whole_and_that_the_same_command_goes_on(folder: Path) -> None:
    process = begun(folder, "interrupted")
    others = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert " of 8 files are whole, and the same command goes on from there" in said.splitlines()[-1]
    assert still_alive(others) == []


@pytest.fixture
def spaced_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This interpreter in a folder with a space in its name."""
    made = tmp_path / "an environment"
    venv.create(made, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(made)})
    (Path(packages) / "all.pth").write_text(sysconfig.get_path("purelib"))
    monkeypatch.setattr(sys, "executable", str(made / "bin" / "python"))


@pytest.mark.usefixtures("spaced_python", "numbers")
def test_a_worker_of_beams_that_dies_is_told_in_one_line_and_none_is_left_and_whole_files_are_as_by_one_process(
    folder: Path,
) -> None:
    process = begun(folder, "died", "--with", "beam")
    others = psutil.Process(process.pid).children(recursive=True)
    [worker, *_] = [one for one in others if one.name() != "sh" and "sdk_worker_main" in " ".join(one.cmdline())]
    worker.kill()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 4
    last = said.splitlines()[-1]
    assert last.startswith("harness: prepare: Apache Beam: Worker subprocess exited with return code ")
    assert last.endswith(" files are whole, and the same command goes on from there")
    assert still_alive(others) == []
    whole = [*(folder / "died").glob("*.tfrecord")]
    assert whole
    for file in whole:
        assert file.read_bytes() == (folder / "one" / file.name).read_bytes()


def test_a_damaged_or_missing_file_is_written_again_and_whole_ones_stay(folder: Path, numbers: dict[str, Any]) -> None:
    target = folder / "one"
    damaged, missing, whole = (target / numbers["shards"][k]["file"] for k in (0, 3, 5))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    missing.unlink()
    stays = whole.stat().st_mtime_ns
    refused = run("sweep", "--data=tfrecord:one", "--dry-run", folder=folder)
    assert refused.returncode == 2
    assert f"'one/{missing.name}' is missing; prepare it again" in refused.stderr
    done = run(*SOURCE, "one", *NOW, folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is damaged or missing, and is written again") == 2
    assert features(target)["digest"] == numbers["digest"] == digest_of(target)
    assert whole.stat().st_mtime_ns == stays
    again = run(*SOURCE, "one", "--quiet", folder=folder)
    assert (again.returncode, again.stderr) == (0, "")
    assert "nothing was missing: every file is as it was written" in again.stdout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB; only root can mount one."""
    with disk_of("256k", tmp_path) as disk:
        yield disk


def test_a_full_disk_ends_in_one_line_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    command = ("prepare", "photographs:24", str(small_disk / "files"), "--shards", "12", "--processes", "1")
    data = ("--data-dir", str(tmp_path / "data"))
    full = run(*command, *data, "--quiet", folder=tmp_path)
    assert (full.returncode, full.stdout, full.stderr.count("\n")) == (4, "", 1)
    assert f"target: cannot write to '{small_disk}/files': No space left on device; " in full.stderr
    there = sorted((small_disk / "files").glob("*.tfrecord"))
    assert 0 < len(there) < 12
    assert f"; {len(there)} of 12 files are whole" in full.stderr
    stay = {file: file.stat().st_mtime_ns for file in there}
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    done = run(*command, *data, "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["preparation"]["written"] == 24  # by both calls
    assert {file: file.stat().st_mtime_ns for file in there} == stay
    assert features(small_disk / "files")["digest"] == digest_of(small_disk / "files")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("photgraphs", "new"), "source: 'photgraphs' is not one of digits, photographs, "),
        (("folder:gone", "new/deep/down"), "source: 'folder:gone' cannot be read: No such file or directory"),
        (("digits", "."), "target: '.' has files that prepare has not made, such as "),
        (("digits", "own_numbers.py"), "target: given 'own_numbers.py', expected a folder: it is a file"),
        (("iris", "new", "--shards", "151"), "--shards: given 151, expected at most 150, one for each example"),
        (("iris", "new", "--with", "spark"), "--with: 'spark' is not one of local, dask, beam"),
        (("iris", "new", "--with", "local,dusk"), "--with: 'dusk' is not one of local, dask, beam"),
        (("iris", "new", "--compression", "zip"), "--compression: 'zip' is not one of none, gzip, zlib"),
    ],
)
def test_what_cannot_be_prepared_is_refused_in_one_line_and_nothing_is_made(
    folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = run("prepare", *arguments, "--processes", "1", folder=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr
    assert not (folder / "new").exists()


def test_a_home_folder_is_meant_where_no_shell_has_put_it_in(folder: Path) -> None:
    done = run("prepare", "digits", "~nobody-of-that-name/new", folder=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("harness: target: given '~nobody-of-that-name/new', expected a path")


def test_a_way_that_is_not_installed_is_refused_with_what_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = run("prepare", "iris", "new", "--with", "local,beam", folder=folder)
    assert (done.returncode, done.stderr) == (
        2,
        "harness: --with: beam is not installed here; pip install 'tf-distribute-harness[beam]'\n",
    )
