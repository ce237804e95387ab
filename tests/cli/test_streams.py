"""Where the output goes: readers that have had enough, closed streams, encodings, odd surroundings."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import run as main
from harness.record import RunStore
from tests.comparisons import stored, sweep_run
from tests.record.examples import cell, failed_trial, manifest, trial

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
    with RunStore.create(tmp_path / "results", manifest(status="finished")) as store:
        for block in range(40):
            store.append(trial(block, windows_count=100))
    return tmp_path


@pytest.mark.parametrize("verb", [f"{DRY} --json", "show latest", "export latest"])
def test_a_reader_that_has_had_enough_is_no_failure(run: Path, verb: str) -> None:
    done = shell(f"$HARNESS {verb} | head -1", run)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") <= 1


def test_a_reader_that_has_had_enough_changes_no_exit_code(tmp_path: Path) -> None:
    for made in (sweep_run("a", seed=1), sweep_run("slow", seed=3, wall=1.06)):
        stored(made, tmp_path / "results")
    done = shell("$HARNESS compare a slow | true", tmp_path)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("verb", "where", "reason"),
    [
        ("list", ">/dev/full", "No space left on device"),
        ("--help", ">/dev/full", "No space left on device"),
        ("export latest", ">/dev/full", "No space left on device"),
        ("show latest", ">&-", "it is closed"),
        ("list", "1</dev/null", "Bad file descriptor"),
    ],
)
def test_an_answer_that_cannot_be_written_is_exit_code_four_and_one_line(
    run: Path, verb: str, where: str, reason: str
) -> None:
    done = shell(f"$HARNESS {verb} {where}", run)
    assert done.returncode == 4
    assert done.stderr == f"harness: cannot write standard output: {reason}; send it somewhere else\n"


def test_every_verb_says_that_its_answer_cannot_be_written(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    reference = shlex.quote(str(HERE / "results" / "reference"))
    verbs = [
        *(f"show latest{flag}" for flag in ("", " --json")),
        *(f"list{flag}" for flag in ("", " --json")),
        *(f"export latest --format {name}" for name in ("csv", "cells", "json")),
        *(f"compare {reference} --along replicas{flag}" for flag in ("", " --json", " --output c.html")),
        *(f"history --results {shlex.quote(str(HERE))}/results{flag}" for flag in ("", " --json")),
        *(f"report latest{flag}" for flag in ("", " --json")),
        *(f"sweep --dry-run{flag}" for flag in ("", " --json")),
        *(f"faults --dry-run{flag}" for flag in ("", " --json")),
        "sweep --help",
    ]
    for verb in verbs:
        with open("/dev/full", "w") as full:  # noqa: PTH123
            monkeypatch.setattr(sys, "stdout", full)
            assert main(shlex.split(verb)) == 4, verb
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("harness: cannot write standard output: ")


@pytest.mark.parametrize(("verb", "code"), [("show latest", 0), ("sweep --replicas x", 2)])
@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_standard_error_that_takes_no_more_changes_nothing(run: Path, verb: str, code: int, where: str) -> None:
    assert shell(f"$HARNESS {verb} {where}", run).returncode == code


@pytest.mark.parametrize("verb", ["show latest", "show latest --json", "export latest", "export latest --format json"])
def test_control_characters_of_a_record_do_not_reach_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = "a:b\x1b[2J\u202e\x07\x9b\r"
    own = cell(model=hostile)
    with RunStore.create(tmp_path / "results", manifest(cells=[own])) as store:
        store.append(failed_trial(cell=own, cell_id=own.cell_id, reason=hostile, evidence=hostile))
    assert main(verb.split()) == 0
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    if "json" in verb:
        assert hostile in json.loads(out)["trials"][0].values()  # escaped, and nothing lost


@pytest.mark.parametrize(
    "verb", ["show latest", "show latest --json", "export latest", "report latest", "sweep latest.toml"]
)
def test_what_a_record_says_is_no_command_to_github_in_any_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = "::error::a\n  ::add-mask::b ##[command]c"
    (tmp_path / "latest.toml").write_text("model = '##[command]'")
    with RunStore.create(tmp_path / "results", manifest()) as store:
        store.append(failed_trial(reason=hostile, evidence=hostile))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(verb.split()) == (2 if "sweep" in verb else 0)
    said = capsys.readouterr()
    for text in said:
        assert "##[" not in text
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    if "json" in verb:
        assert hostile in json.loads(said.out)["trials"][0].values()


@pytest.mark.parametrize(("where", "there"), [("| cat", False), (">file; cat file", True)])
def test_a_file_that_an_answer_goes_to_in_github_has_it_as_it_is(tmp_path: Path, where: str, there: bool) -> None:
    with RunStore.create(tmp_path / "results", manifest()) as store:
        store.append(failed_trial(reason="##[command]c"))
    done = shell(f"$HARNESS export latest {where}", tmp_path, GITHUB_ACTIONS="true")
    assert ("##[command]c" in done.stdout) == there
    assert ("## [command]c" in done.stdout) != there


@pytest.mark.parametrize("verb", ["show latest", "sweep --strategy größe"])
def test_a_terminal_that_cannot_show_a_letter_gets_an_escape(run: Path, verb: str) -> None:
    done = shell(f"$HARNESS {verb}", run, PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if "größe" in verb else 0)


def test_a_file_name_that_is_no_text_is_still_named(run: Path) -> None:
    done = shell("$HARNESS sweep $'\\xff\\xfe.toml'", run)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_variables_of_somebodys_own_plots_are_no_fault_of_a_page(run: Path) -> None:
    """Home is not an empty folder: matplotlib would list the fonts anew."""
    own = {"MPLBACKEND": "nonsense", "MATPLOTLIBRC": "/nowhere"}
    done = shell("$HARNESS report latest --output page.html", run, HOME=str(Path.home()), **own)
    assert (done.returncode, done.stderr) == (0, "")
    assert (run / "page.html").is_file()


def test_it_runs_from_any_folder_and_without_a_home(tmp_path: Path) -> None:
    done = shell("unset HOME; $HARNESS sweep --dry-run --strategy none --replicas 1", tmp_path)
    assert done.returncode == 0


def test_a_home_that_nobody_knows_is_said_in_one_line(tmp_path: Path) -> None:
    done = shell("$HARNESS sweep --strategy none --replicas 1 --data-dir '~no-such-user/x'", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("harness: data_dir: given '~no-such-user/x'")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
