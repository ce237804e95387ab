"""What a process of its own sees to: that a job which is being submitted is taken back however the sweep ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.run.launchers.agents.watchdog import MINDER, Watchdog
from tests.run.launchers.agents.conftest import comes_true

SLOW_S = 1.0
SWEEP = f"""
import sys
sys.path.insert(0, {str(Path.cwd())!r})
from harness.run.launchers.agents.watchdog import Watchdog
watchdog = Watchdog(**__import__("json").loads(sys.argv[1]))
print("submits", flush=True)
watchdog.first_answer()
"""


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """A stand-in for a cluster's queue: a file is a job."""
    folder = tmp_path / "queue"
    folder.mkdir()
    return folder


def submitting(queue: Path, after_s: float = 0.0, status: int = 0) -> dict[str, object]:
    """Programs that submit a job (after a while), take it back, and say what is left."""
    submit = f"sleep {after_s}; cat > {queue}/job; touch {queue}-was-full; echo 7; echo beware >&2; exit {status}"
    return {
        "first": ["sh", "-c", submit],
        "text": "the script",
        "limit_s": 20.0,
        "afterwards": ["sh", "-c", f"rm -f {queue}/job"],
        "left": ["ls", str(queue)],
    }


def test_how_the_submission_ended_and_what_it_said_is_told_and_the_job_ends_with_the_sweep(queue: Path) -> None:
    with contextlib.closing(Watchdog(**submitting(queue))) as watchdog:  # type: ignore[arg-type]
        answer = watchdog.first_answer()
        assert (answer.status, answer.output, answer.error) == (0, "7", "beware")
        assert (queue / "job").read_text() == "the script"
        assert watchdog.status is None
    assert not list(queue.iterdir())


def test_a_submission_that_is_refused_says_why(queue: Path) -> None:
    with contextlib.closing(Watchdog(**submitting(queue, status=1))) as watchdog:  # type: ignore[arg-type]
        assert (watchdog.first_answer().status, watchdog.first_answer().error) == (1, "beware")


def test_a_submission_that_does_not_answer_is_given_up_in_time(queue: Path) -> None:
    told = {**submitting(queue, after_s=60), "limit_s": 0.2}
    with contextlib.closing(Watchdog(**told)) as watchdog:  # type: ignore[arg-type]
        assert watchdog.first_answer().status is None


def test_a_sweep_that_is_killed_while_it_submits_leaves_no_job(queue: Path) -> None:
    told = json.dumps(submitting(queue, after_s=SLOW_S))
    sweep = subprocess.Popen([sys.executable, "-c", SWEEP, told], stdout=subprocess.PIPE, text=True)
    assert sweep.stdout is not None
    assert sweep.stdout.readline() == "submits\n"
    assert comes_true(lambda: any(minders_of(sweep.pid)))  # a child has its own command line once it is that program
    minder = next(minders_of(sweep.pid))
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    assert comes_true(Path(f"{queue}-was-full").exists)  # it was under way, and nobody could call it back
    assert comes_true(lambda: not Path(f"/proc/{minder}").exists())
    assert not list(queue.iterdir())


def minders_of(parent: int) -> Iterator[int]:
    for child in psutil.Process(parent).children():
        if str(MINDER) in child.cmdline():
            yield child.pid


def test_what_is_left_is_taken_back_again_until_nothing_is(queue: Path, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    told = submitting(queue)
    # as a controller that is busy: the first request has no effect
    told["afterwards"] = ["sh", "-c", f"echo x >> {tries}; [ $(wc -l < {tries}) -lt 2 ] || rm -f {queue}/job"]
    with contextlib.closing(Watchdog(**told)) as watchdog:  # type: ignore[arg-type]
        watchdog.first_answer()
    assert not list(queue.iterdir())
    assert tries.read_text() == "x\nx\n"


def test_a_clean_up_that_takes_longer_than_is_waited_for_goes_on_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.launchers.agents.watchdog.END_LIMIT_S", 0.01)
    left = tmp_path / "left"
    left.touch()
    watchdog = Watchdog(afterwards=["sleep", "0.1"], remove=[left])
    watchdog.close()
    assert comes_true(lambda: watchdog.status is not None)
    assert not left.exists()


def test_a_program_is_given_its_time_to_end_by_itself_before_it_is_ended(tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    program = ["sh", "-c", f"trap 'exit 1' TERM; sleep 0.3; touch {tidied}"]
    Watchdog(run=program, patience_s=20.0).close()
    assert tidied.exists()
    tidied.unlink()
    Watchdog(run=["sh", "-c", f"trap 'exit 1' TERM; sleep 5 & wait; touch {tidied}"]).close()
    assert not tidied.exists()


@pytest.mark.parametrize(("end", "tidied"), [("exit 0", False), ("kill -9 $$", True)])
def test_only_after_a_program_that_did_not_end_well_something_tidies_up(tmp_path: Path, end: str, tidied: bool) -> None:
    done = tmp_path / "done"
    with contextlib.closing(Watchdog(run=["sh", "-c", end], afterwards=["touch", str(done)])) as watchdog:
        assert comes_true(lambda: watchdog.status is not None)
    assert done.exists() == tidied
