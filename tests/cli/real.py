"""Real sweeps with real TensorFlow, as small as they can be, in this process or in one of their own."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import psutil

from harness import cli
from harness.environment import usable_cores
from harness.record import Run, TrialRecord, load_run
from tests.preloaded import handed_in

SMALL = [
    "--model=mlp",
    "--optimizer=sgd",  # no slots to keep and compare
    "--data=synthetic",
    "--batch-size=8",
    "--trials=1",
    "--windows=5",
    "--max-warmup=0",
    "--window=0.02",
    "--timeout=60",
]
ON_ALL_CORES = f"--intra-op-threads={usable_cores()}"
"""One device is the whole machine then, so that no base case on that is added."""
ROOT = Path.cwd()
_STARTED: "list[subprocess.Popen[str]]" = []


def without_overruled(arguments: Sequence[str]) -> list[str]:
    """`arguments` without what is in SMALL and given again later: no flag is taken twice."""
    names = [argument.partition("=")[0] for argument in arguments]
    return [one for i, one in enumerate(arguments) if one not in SMALL or names[i] not in names[i + 1 :]]


def argv(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness", *without_overruled(arguments)]


def start(*arguments: str, folder: Path, **environment: str) -> "subprocess.Popen[str]":
    """`python -m harness ARGUMENTS` in `folder`, its output in pipes; it heeds Ctrl-C.

    In the background of a shell, where CI may run these tests, Ctrl-C is ignored, and a child inherits that.
    """
    started = subprocess.Popen(
        argv(*arguments),
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    _STARTED.append(started)
    return started


def end_what_goes_on() -> None:
    """Kill what a test has started and did not wait for, as one that failed: it would take a core from the others."""
    while _STARTED:
        if (started := _STARTED.pop()).poll() is None:
            started.kill()
            started.communicate()


def run(*arguments: str, folder: Path, others: bool = False) -> "subprocess.CompletedProcess[str]":
    """`harness ARGUMENTS` in `folder`, in this process; trials are forked from TensorFlow that is imported already, and
    with `others` those of the engines beside it from theirs."""
    out, error = io.StringIO(), io.StringIO()
    with (
        handed_in(others),
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, PYTHONPATH=str(ROOT)),  # for an engine of the tests' own, whose process is new
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        code = cli.run(without_overruled(arguments))
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), error.getvalue())


def only_run(results: Path) -> Run:
    """The one run in a results folder."""
    [path] = [entry for entry in results.iterdir() if entry.is_dir()]
    return load_run(path)


def wait_for_lines(results: Path, count: int, limit_s: float = 60) -> Path:
    """Wait until the only run in `results` has so many records; returns its folder."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        for path in results.glob("*/trials.jsonl"):
            if path.read_bytes().count(b"\n") >= count:
                return path.parent
        time.sleep(0.02)
    raise AssertionError(f"no {count} records within {limit_s} s")


def processes_of(run_process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The zygote and the trials of a sweep."""
    try:
        return psutil.Process(run_process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def wait_for_trials(run_process: "subprocess.Popen[str]", count: int, limit_s: float = 60) -> list[psutil.Process]:
    """Wait until a sweep has a zygote and so many trials."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        found = processes_of(run_process)
        if sum(map(_is_of_a_zygote, found)) > count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"no {count} trials within {limit_s} s")


def wait_for_turns(process: "subprocess.Popen[str]") -> None:
    """Wait until the trials of a sweep are set up and take turns; give it windows that last."""
    assert process.stderr is not None
    while "trials take turns" not in (line := process.stderr.readline()):
        assert line, "it ended"


def _is_of_a_zygote(process: psutil.Process) -> bool:
    """Whether it is a zygote or what one forked: a library may start others for a moment while data are prepared."""
    try:
        return any("harness.trial" in word for word in process.cmdline())
    except psutil.Error:
        return False


def still_alive(processes: Sequence[psutil.Process], within_s: float = 5.0) -> list[psutil.Process]:
    """Those that have not ended within a time."""
    _, alive = psutil.wait_procs(processes, timeout=within_s)
    return [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def repeated(trials: Sequence[TrialRecord]) -> list[tuple[str, int, int]]:
    """Trials that were recorded twice."""
    keys = [(trial.cell_id, trial.block, trial.attempt) for trial in trials]
    return [key for key in set(keys) if keys.count(key) > 1]


def unmeasured(run: Run) -> list[tuple[str, int]]:
    """Planned trials, as (cell id, block), without a record that is ok."""
    ok = {(trial.cell_id, trial.block) for trial in run.trials if trial.status == "ok"}
    planned = {
        (cell_id, plan.first_block + number)
        for plan in run.manifest.plans
        for number, block in enumerate(plan.blocks)
        for group in block
        for cell_id in group
    }
    return sorted(planned - ok)


def shown(results: Path, folder: Path, name: str = "latest") -> dict[str, object]:
    """What `show --json` says of a run."""
    done = run("show", name, "--results", str(results), "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer
