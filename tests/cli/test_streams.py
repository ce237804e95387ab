"""Where the output goes: readers that have had enough, closed streams, encodings, odd surroundings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.record import RunStore
from tests.record.examples import manifest, trial

HERE = Path.cwd()
HARNESS = f"'{sys.executable}' -m harness"
DRY = "sweep --dry-run --trials 40"


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A shell command in `folder`; `$HARNESS` is the command line, `$?` of a pipe is its first failure."""
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(HERE)}
    script = command.replace("$HARNESS", HARNESS)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**surroundings, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with RunStore.create(tmp_path / "results", manifest()) as store:
        for block in range(40):
            store.append(trial(block, windows_count=100))
    return tmp_path


@pytest.mark.parametrize("verb", [f"{DRY} --json", "show latest", "export latest"])
def test_a_reader_that_has_had_enough_is_no_failure(run: Path, verb: str) -> None:
    done = shell(f"$HARNESS {verb} | head -1", run)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") <= 1


@pytest.mark.parametrize(
    ("verb", "closed"), [("list", ">&-"), ("show latest", "2>&-"), ("sweep --replicas x", ">&- 2>&-")]
)
def test_streams_that_a_shell_closed_are_no_failure(run: Path, verb: str, closed: str) -> None:
    done = shell(f"$HARNESS {verb} {closed}", run)
    assert done.returncode == (2 if "x" in verb.split() else 0)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["show latest", "sweep --strategy größe"])
def test_a_terminal_that_cannot_show_a_letter_gets_an_escape(run: Path, verb: str) -> None:
    done = shell(f"$HARNESS {verb}", run, PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if "größe" in verb else 0)


def test_a_file_name_that_is_no_text_is_still_named(run: Path) -> None:
    done = shell("$HARNESS sweep $'\\xff\\xfe.toml'", run)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_it_runs_from_any_folder_and_without_a_home(tmp_path: Path) -> None:
    done = shell("unset HOME; $HARNESS sweep --dry-run --strategy none --replicas 1", tmp_path)
    assert done.returncode == 0


def test_a_home_that_nobody_knows_is_said_in_one_line(tmp_path: Path) -> None:
    done = shell("$HARNESS sweep --strategy none --replicas 1 --data-dir '~no-such-user/x'", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("harness: data_dir: given '~no-such-user/x'")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
