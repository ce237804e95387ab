"""Kills, and two sweeps at once: no process is left behind, nothing is lost, and a resumed run is complete.

With the tests' own engine, which needs no TensorFlow; test_real_interruptions.py has the cases with it.
"""

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from harness.record import load_run
from tests.cli.real import (
    ROOT,
    argv,
    only_run,
    processes_of,
    repeated,
    run,
    start,
    still_alive,
    unmeasured,
    wait_for_lines,
    wait_for_trials,
    wait_for_turns,
)
from tests.engines.numpy_engine import flags

CELLS = flags(replicas="2", windows="5")
LONG = flags(replicas="2", windows="100", window="0.05", timeout="60")


def test_a_kill_while_trials_take_turns_leaves_no_process_and_the_run_says_so(tmp_path: Path) -> None:
    process = start("sweep", *LONG, folder=tmp_path)
    wait_for_turns(process)
    children = wait_for_trials(process, 2)
    process.kill()
    process.communicate()
    assert len(children) >= 3  # git, asked for the revision, may still be there
    assert still_alive(children) == []
    assert "killed" in run("list", folder=tmp_path).stdout
    assert run("show", "latest", folder=tmp_path).returncode == 0


def test_a_kill_between_two_blocks_loses_nothing_and_a_resumed_run_is_complete(tmp_path: Path) -> None:
    process = start("sweep", *CELLS, folder=tmp_path)
    path = wait_for_lines(tmp_path / "results", 2)
    children = processes_of(process)
    process.kill()
    process.communicate()
    assert len(children) >= 1
    assert still_alive(children) == []

    before = load_run(path).trials
    assert len(before) >= 2
    assert {trial.status for trial in before} == {"ok"}
    done = run("sweep", "--resume", "latest", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    after = load_run(path)
    assert after.trials[: len(before)] == before
    assert unmeasured(after) == []
    assert repeated(after.trials) == []
    assert json.loads(done.stdout)["path"] == f"results/{path.name}"


def test_a_fork_server_that_is_killed_costs_its_trials_and_not_the_sweep(tmp_path: Path) -> None:
    process = start("sweep", *flags(replicas="2", windows="10", window="0.05", timeout="60"), folder=tmp_path)
    wait_for_turns(process)
    zygote = wait_for_trials(process, 2)[0]
    zygote.kill()
    _, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    stored = only_run(tmp_path / "results")
    first = [trial for trial in stored.trials if trial.block == 0]
    assert "crashed" in {trial.status for trial in first}
    assert all("ended during" in (trial.reason or "") for trial in first if trial.status == "crashed")
    assert [trial.status for trial in stored.trials if trial.block == 1] == ["ok"] * 2


IMPORTING = """
import os, signal, sys
module, times = sys.argv[1:3]
sys.argv[1:3] = []
class Pressed:
    def find_spec(self, name, *_):
        for _ in range(int(times) if name == module else 0):
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
from harness.__main__ import main
main()
"""
"""The command line, with Ctrl-C at the import of a module."""


@pytest.mark.parametrize("times", ["1", "2"])
@pytest.mark.parametrize("module", ["harness.cli", "harness.cli.sweep", "harness.cli._measuring"])
def test_ctrl_c_while_modules_are_imported_is_one_line(tmp_path: Path, module: str, times: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, module, times, "sweep", "--dry-run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "harness: interrupted\n")


def take_terminal() -> None:
    """In the child: its standard input is the terminal that controls it, and nobody has told it to ignore its loss."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def test_a_terminal_that_is_lost_ends_a_sweep_as_ctrl_c_does_and_costs_no_record(tmp_path: Path) -> None:
    """What it would still draw and say there fails."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        argv("sweep", *LONG),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    drawn = b""
    while b"at the clock" not in drawn:
        drawn += os.read(ours, 65536)
    children = wait_for_trials(process, 2)
    os.close(ours)
    assert process.wait(timeout=60) == 130
    assert still_alive(children) == []
    stored = only_run(tmp_path / "results")
    assert stored.manifest.status == "interrupted"
    assert [trial.status for trial in stored.trials] == ["interrupted"] * 2


def test_a_sweep_that_nohup_has_started_outlives_its_terminal(tmp_path: Path) -> None:
    process = subprocess.Popen(
        argv("sweep", *CELLS),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    wait_for_turns(process)
    process.send_signal(signal.SIGHUP)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert only_run(tmp_path / "results").manifest.status == "finished"
