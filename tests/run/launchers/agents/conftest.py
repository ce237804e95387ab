"""Real agents in processes of their own, which fork trials without TensorFlow: what is tested is everything else."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from harness.protocol.messages import Request
from harness.run.launchers.agents.meeting import Meeting
from harness.run.launchers.agents.remote import Agent
from tests.record.examples import cell
from tests.run.network.conftest import emulation as emulation  # a fixture
from tests.run.network.conftest import within
from tests.run.process.zygotes import WITHOUT_TENSORFLOW

TOKEN = "the token of these tests"
LIMIT_S = 30.0
HARNESS = """
import sys
sys.path.insert(0, {root!r})
sys.executable = {python!r}
from harness.cli import run
sys.exit(run(sys.argv[1:]))
"""
PYTHON = """#!/bin/sh
case "$*" in
    *harness.trial.zygote*) exec {real} {folder}/zygote.py "$@" ;;
    "-m harness "*) shift 2; exec {real} {folder}/harness.py "$@" ;;
esac
exec {real} "$@"
"""

Process = subprocess.Popen[str]
Start = Callable[..., Process]


def without_tensorflow(folder: Path) -> str:
    """An interpreter whose `-m harness` starts agents and preloaded processes with the stand-in for trials.

    What such a trial does goes by its seed, see `request`.
    """
    python = folder / "python"
    (folder / "zygote.py").write_text(WITHOUT_TENSORFLOW)
    (folder / "harness.py").write_text(HARNESS.format(root=str(Path.cwd()), python=str(python)))
    python.write_text(PYTHON.format(real=shlex.quote(sys.executable), folder=shlex.quote(str(folder))))
    python.chmod(0o755)
    return str(python)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `python -m harness worker ARGUMENTS` with the token, unless another is given; ended with the test."""
    python = without_tensorflow(tmp_path)
    started: list[Process] = []

    def begin(*arguments: str, token: str = TOKEN, before: Sequence[str] = ()) -> Process:
        started.append(
            subprocess.Popen(
                [*before, python, "-m", "harness", "worker", *arguments],
                env={**os.environ, "HARNESS_TOKEN": token},
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        )
        return started[-1]

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


@pytest.fixture
def told() -> list[str]:
    """What the meeting has told the person."""
    return []


@pytest.fixture
def meeting(told: list[str]) -> Iterator[Meeting]:
    opened = Meeting("", TOKEN, told.append)
    yield opened
    opened.close()


@pytest.fixture
def worker(meeting: Meeting, start: Start) -> Process:
    """The process of one agent."""
    return start("--connect", meeting.address())


@pytest.fixture
def agent(meeting: Meeting, worker: Process) -> Agent:
    """The agent of `worker`, which is ready."""
    assert worker.poll() is None
    return joined(meeting, 1)[0]


def joined(meeting: Meeting, count: int) -> list[Agent]:
    """The living agents, once there are so many."""
    assert comes_true(lambda: len(meeting.living()) >= count), meeting.refusals
    return meeting.living()


def comes_true(holds: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
    """Whether something does."""
    return within(limit_s, holds)


def request(seed: int) -> Request:
    """The seed says what the stand-in for a trial does: 0 ends well, 1 raises, up to 99 is a signal, else it hangs."""
    return Request(cell=cell(), seed=seed, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=4)
