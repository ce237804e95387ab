"""With real TensorFlow: whenever a sweep is stopped or its disk is full, nothing is left and a resumed run is complete.

The same with the tests' own engine, in more places and in seconds, is in test_interruptions.py.
"""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from harness.record import load_run
from tests.cli.real import (
    SMALL,
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
from tests.disks import disk_of
from tests.engines.numpy_engine import flags

pytestmark = pytest.mark.slow

CELLS = [*SMALL, "--strategy", "none,mirrored", "--replicas", "2", "--intra-op-threads", "2"]
"""On the threads of two cores: there a base case on the whole machine is one on the cell's threads."""
LONG = [*CELLS, "--windows", "100", "--window", "0.1"]


def test_a_kill_during_the_import_leaves_a_run_that_can_be_resumed_and_no_process(tmp_path: Path) -> None:
    process = start("sweep", *CELLS, folder=tmp_path)
    wait_for_lines(tmp_path / "results", 0)  # earlier a child may be git, asked for the revision
    children = wait_for_trials(process, 0)
    process.kill()
    process.communicate()
    assert still_alive(children) == []
    assert only_run(tmp_path / "results").trials == []


def listening(processes: Sequence[psutil.Process]) -> set[int]:
    """The TCP ports that they serve at."""
    found = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):  # one may just have ended
            found |= {at.laddr.port for at in process.net_connections("tcp") if at.status == "LISTEN"}
    return found


def test_a_kill_while_a_data_service_feeds_a_trial_leaves_no_process_and_no_server(tmp_path: Path) -> None:
    fed = ("--work=pipeline", "--data=photographs:64", "--cache=none", "--deterministic=false", "--data-service=2")
    small = [flag for flag in SMALL if not flag.startswith("--optimizer")]
    process = start("sweep", *small, *fed, "--windows=100", folder=tmp_path)
    deadline = time.monotonic() + 60
    ports: set[int] = set()
    while len(ports) < 3:  # a dispatcher and two workers
        assert time.monotonic() < deadline, process.poll()
        time.sleep(0.05)
        ports = listening(children := processes_of(process))
    process.kill()
    process.communicate()
    assert still_alive(children) == []
    assert not ports & {at.laddr.port for at in psutil.net_connections("tcp") if at.status == "LISTEN"}


def test_ctrl_c_ends_trials_that_take_turns_says_how_to_resume_and_resuming_completes(tmp_path: Path) -> None:
    process = start("sweep", *LONG, folder=tmp_path)
    wait_for_turns(process)
    children = wait_for_trials(process, 2)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert still_alive(children) == []
    last = error.splitlines()[-1]
    stored = only_run(tmp_path / "results")
    assert last.startswith("harness: interrupted; ")
    assert last.endswith(f"go on with: python -m harness sweep --resume results/{stored.path.name}")
    assert stored.manifest.status == "interrupted"
    assert {trial.status for trial in stored.trials} == {"interrupted"}
    assert "Traceback" not in error

    for verb in (["show", "latest"], ["report", "latest"], ["export", "latest"]):
        assert run(*verb, folder=tmp_path).returncode == 0
    assert "interrupted" in run("list", folder=tmp_path).stdout

    # The rest with fewer windows: this is not about measuring.
    manifest = json.loads((stored.path / "run.json").read_text())
    manifest["sweep"]["windows"] = 5
    (stored.path / "run.json").write_text(json.dumps(manifest))
    done = run(*last.partition("python -m harness ")[2].split(), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    after = load_run(stored.path)
    assert unmeasured(after) == []
    assert repeated(after.trials) == []
    assert after.manifest.status == "finished"


def test_ctrl_c_during_the_import_says_how_to_resume_too(tmp_path: Path) -> None:
    process = start("sweep", *CELLS, folder=tmp_path)
    wait_for_lines(tmp_path / "results", 0)
    children = wait_for_trials(process, 0)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=10)
    assert process.returncode == 130
    assert still_alive(children) == []
    stored = only_run(tmp_path / "results")
    assert error == (
        f"harness: interrupted; 0 trials are kept in results/{stored.path.name}; "
        f"go on with: python -m harness sweep --resume results/{stored.path.name}\n"
    )
    assert stored.manifest.status == "interrupted"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a manifest and little else; only root can mount one."""
    with disk_of("64k", tmp_path) as disk:
        yield disk


def test_a_disk_that_fills_up_is_a_clear_error_and_nothing_is_lost(small_disk: Path) -> None:
    """With the tests' own engine: it is about the disk."""
    cells = flags(replicas="2", windows="5", window="0.05", timeout="60")
    process = start("sweep", *cells, "--results", str(small_disk), folder=small_disk.parent)
    path = wait_for_lines(small_disk, 1)
    filler = small_disk / "filler"
    while filler.stat().st_size < 65536 if filler.exists() else True:
        try:
            with filler.open("ab", buffering=0) as stream:
                stream.write(b"x" * 4096)
        except OSError:
            break
    _, error = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "Traceback" not in error
    assert error.splitlines()[-1] == (
        f"harness: cannot append to '{path}/trials.jsonl': No space left on device; "
        f"free some space, then go on with --resume {path.name}"
    )
    kept = load_run(path)
    assert len(kept.trials) >= 1
    assert not kept.torn

    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=1m", str(small_disk)], check=True)
    done = run("sweep", "--resume", path.name, "--results", str(small_disk), "--quiet", folder=small_disk.parent)
    assert done.returncode == 0, done.stderr
    after = load_run(path)
    assert unmeasured(after) == []
    assert repeated(after.trials) == []
