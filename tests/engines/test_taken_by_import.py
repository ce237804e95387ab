"""A device that a process takes as it imports its framework: no process that outlives a trial may import that."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.record.reading import Run, load_run
from tests.engines.numpy_engine import flags

ROOT = Path(__file__).parents[2]


def swept(folder: Path, *more: str, **environment: str) -> Run:
    """A sweep of four cells, two trials each, on the chip."""
    asked = flags(engine="tests.engines.chip_engine:ChipEngine", device="chip", results=str(folder / "results"))
    told = subprocess.run(
        [sys.executable, "-m", "harness", "sweep", "--json", *asked, *more],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CHIP_LOCK": str(folder / "lock"), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    [folder] = (folder / "results").glob("2*")
    assert told.returncode in (0, 1), told.stderr
    assert json.loads(told.stdout)
    return load_run(folder)


@pytest.mark.parametrize("more", [(), ("--live-trials", "4")])
def test_every_trial_has_the_chip_for_itself_and_none_meets_another(tmp_path: Path, more: tuple[str, ...]) -> None:
    run = swept(tmp_path, *more)
    assert len(run.trials) == 6
    assert {(trial.status, trial.reason) for trial in run.trials} == {("ok", None)}
    assert {trial.interleaving for trial in run.trials} == {"blocks"}


def test_a_preloaded_process_would_keep_it_from_all_of_them_and_each_is_tried_since_that_may_pass(
    tmp_path: Path,
) -> None:
    run = swept(tmp_path, CHIP_IS_KNOWN="no")
    assert {(trial.status, trial.reason) for trial in run.trials} == {
        ("unsupported", "the chip is in use by another process")
    }
    assert all(trial.may_pass for trial in run.trials)
    assert len(run.trials) == 6
