"""What the cleanup benchmark counts: each column does, for a program that leaves one of each."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.goals.leftovers import Left, Watched, listening, namespace_of
from harness.run.network import NotAvailable, PrivateLoopback

LISTENS = """
import socket, sys, time
listening = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1], "w").write(str(listening.getsockname()[1]))
time.sleep(60)
"""


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    run = Watched(tmp_path, jobs=lambda: 0)
    yield run
    run.clear()


def listens(run: Watched, namespace: str = "") -> tuple["subprocess.Popen[bytes]", int]:
    """A process of the run that listens, whose parent is gone, and its port."""
    said = run.folder / "port"
    inside = ["nsenter", f"--net={namespace}"] if namespace else []
    command = [*inside, sys.executable, "-c", LISTENS, str(said)]
    process = subprocess.Popen(command, env={**os.environ, **run.environment}, start_new_session=True)
    while not (said.exists() and said.read_text()):
        time.sleep(0.02)
    return process, int(said.read_text())


def test_a_run_that_left_nothing_has_nothing_left(watched: Watched) -> None:
    watched.look()
    assert watched.left() == Left(0, 0, 0, 0, 0)
    assert watched.left().nothing


def test_a_process_its_port_and_its_file_are_counted_until_they_are_gone(watched: Watched) -> None:
    process, port = listens(watched)
    scratch = watched.temporary / "scratch"
    scratch.touch()
    watched.look()
    assert listening(process.pid) == {port}
    assert watched.left() == Left(1, 1, 0, 1, 0)
    watched.clear()
    process.wait()
    assert watched.left() == Left(0, 0, 0, 1, 0)
    scratch.unlink()
    (watched.work / "results").mkdir()  # what a run is for
    assert watched.left().nothing


def test_a_namespace_without_a_name_and_a_port_in_it_are_counted(watched: Watched) -> None:
    if os.geteuid() != 0:
        pytest.skip("joining a network namespace from outside needs root")
    try:
        with contextlib.closing(PrivateLoopback()) as made:
            process, port = listens(watched, made.hosts[0].namespace)
            watched.look()
            assert watched.ports == {(namespace_of(process.pid), port)}
            assert watched.left() == Left(1, 1, 1, 0, 0)
            watched.clear()
            process.wait()
            # the run's process is gone, the namespace is held by somebody else
            assert watched.left() == Left(0, 0, 1, 0, 0)
    except NotAvailable as error:
        pytest.skip(str(error))
    assert watched.left().nothing


def test_a_job_of_slurm_is_counted(tmp_path: Path) -> None:
    run = Watched(tmp_path, jobs=lambda: 1)
    assert not run.left().nothing
