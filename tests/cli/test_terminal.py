"""What reaches a terminal: control sequences where it heeds them, and never one that a record brought along."""

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli._terminal import heeds_control
from harness.record import RunStore
from harness.visible import one_line
from tests.synthetic import default_cells, make_run

HERE = Path.cwd()
Run = Callable[..., tuple[int, str, str]]


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("term", "heeds"),
    [("xterm-256color", True), ("screen", True), ("vt100", True), ("dumb", False), ("unknown", False), ("", False)],
)
def test_a_terminal_heeds_control_sequences_unless_it_calls_itself_dumb(
    monkeypatch: pytest.MonkeyPatch, term: str, heeds: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    assert heeds_control(Screen()) is heeds
    assert not heeds_control(io.StringIO())
    monkeypatch.delenv("TERM")
    assert not heeds_control(Screen())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with marked rows in its ranking."""
    folder = tmp_path_factory.mktemp("terminal") / "results"
    manifest, trials = make_run(default_cells((1, 2), (32,)))
    machine = manifest.machine.model_copy(update={"facts": {**manifest.machine.facts, "machine.id": "here"}})
    with RunStore.create(folder, manifest.model_copy(update={"machine": machine})) as store:
        for trial in trials:
            store.append(trial)
    return folder


def on_a_terminal(folder: Path, *arguments: str, **environment: str) -> str:
    """What `harness ARGUMENTS` writes on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(HERE), **environment}
    command = [sys.executable, "-m", "harness", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=surroundings) as process:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65536):
                written += part
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(ours)
        assert process.wait(60) == 0, written
    return written.decode("utf-8")


@pytest.mark.parametrize("verb", [("show", "latest"), ("history",)])
def test_a_dumb_terminal_gets_letters_only_and_another_one_bold(results: Path, verb: tuple[str, ...]) -> None:
    plain = on_a_terminal(results.parent, *verb, TERM="dumb")
    assert "\x1b" not in plain
    assert "none ×1 b32" in plain
    assert "\x1b[1m" in on_a_terminal(results.parent, *verb, TERM="xterm")


HOSTILE_ID = "20261121T\x1b[2J\x1b]0;title\x07\u202e\x9b31m"


def test_a_run_id_that_holds_control_sequences_is_listed_without_them(harness: Run, results: Path) -> None:
    run = next(results.iterdir())
    copy = Path.cwd() / "results" / "odd"
    copy.mkdir(parents=True)
    manifest = json.loads((run / "run.json").read_text()) | {"run_id": HOSTILE_ID}
    (copy / "run.json").write_text(json.dumps(manifest))
    code, out, _ = harness("list")
    assert code == 0
    assert "20261121T\ufffd[2J" in out
    assert out.replace("\n", "").isprintable()


def test_an_error_about_a_file_with_such_a_name_is_printable(harness: Run) -> None:
    code, _, error = harness("show", "nowhere\x1b[31m\u202e")
    assert (code, error.count("\n")) == (2, 1)
    assert error.strip().isprintable()
    assert one_line("a\tb\x1b") == "a b\ufffd"
