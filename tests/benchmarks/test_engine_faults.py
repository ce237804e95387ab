"""Faults of every engine: what the goal script counts as found, and that no engine lacks one that is promised."""

import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from harness.errors import UsageError
from harness.record.trial import TrialRecord
from harness.spec import Cell
from tests.goals import GOALS, load
from tests.preloaded import handed_in
from tests.record.examples import cell, failed_trial, trial

PROMISED = {"alone", "mean", "left_out", "stale", "order", "reordered"}
"""A rank that does not join, a mean for a sum, a bucket left out, a stale copy, another rank's data, another order of a
rank's own data."""


@pytest.fixture(scope="module")
def goal() -> ModuleType:
    """benchmarks/goals/engine_faults.py."""
    return load("engine_faults")


def tried(goal: ModuleType, fault: str, *ends: str) -> Any:
    """With two, three and as many more processes as there are ends."""
    cells = [cell().model_copy(update={"workers": workers}) for workers in range(2, 2 + len(ends))]
    return goal.Tried("torch", "ddp", fault, tuple(map(ended, cells, ends)))


def ended(of: Cell, status: str) -> TrialRecord:
    if status == "ok":
        return trial(cell=of, cell_id=of.cell_id)
    return failed_trial(cell=of, cell_id=of.cell_id, status=status, reason=f"{status} of it")


def test_every_engine_has_every_fault_that_is_promised(goal: ModuleType) -> None:
    assert {of.engine for of in goal.FAULTY} == {"tensorflow", "horovod", "torch", "jax", "keras_distribution"}
    for of in goal.FAULTY:
        assert set(of.faults) >= PROMISED, of.engine


def test_a_fault_is_found_where_it_is_a_wrong_result_everywhere(goal: ModuleType) -> None:
    found = tried(goal, "stale", *["wrong_result"] * 3)
    assert found.as_promised
    assert found.row == ("torch", "ddp", "stale", "found", "found", "found", "wrong_result of it")


@pytest.mark.parametrize(
    ("fault", "ends", "said"),
    [
        ("stale", ("wrong_result", "ok", "wrong_result"), ("found", "missed", "found")),
        ("stale", ("wrong_result", "wrong_result", "timeout"), ("found", "found", "timeout")),
        ("stale", ("wrong_result", "wrong_result"), ("found", "found", "not run")),
        ("auto", ("ok", "wrong_result", "ok"), ("ok", "called wrong", "ok")),
        ("auto", ("ok", "ok", "crashed"), ("ok", "ok", "crashed")),
    ],
)
def test_one_that_is_missed_ends_otherwise_or_is_right_and_called_wrong_breaks_the_promise(
    goal: ModuleType, fault: str, ends: tuple[str, ...], said: tuple[str, ...]
) -> None:
    broken = tried(goal, fault, *ends)
    assert not broken.as_promised
    assert broken.row[3:6] == said


def test_the_table_names_the_processes_at_which_every_loop_was_as_promised(goal: ModuleType) -> None:
    every = tried(goal, "stale", *["wrong_result"] * 3)
    but_three = tried(goal, "stale", "wrong_result", "ok", "wrong_result")
    assert goal.by_fault([every, but_three]) == [("fault", "torch"), ("`stale`", "2, 4")]


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("engine", ["jax", "keras_distribution"])
def test_what_is_promised_is_found_among_three_processes_and_what_is_right_passes(
    goal: ModuleType, engine: str
) -> None:
    [of] = [of for of in goal.FAULTY if of.engine == engine]
    try:
        with handed_in(others=True):
            trials = of.trials([3], of.loops[:1], sorted(PROMISED))
    except UsageError as error:
        pytest.skip(str(error))
    assert {trial.cell.workers for trial in trials} == {3}
    ended = {trial.cell.cross_device_op: trial.status for trial in trials}
    assert ended == {**dict.fromkeys(PROMISED, "wrong_result"), goal.RIGHT: "ok"}


def test_a_goal_script_finds_the_modules_of_tests_without_being_told_where_they_are() -> None:
    command = [sys.executable, "-c", "import common, tests.engines.sweeps"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    assert subprocess.run(command, cwd=GOALS, env=environment, check=False).returncode == 0
