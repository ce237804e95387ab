"""Cells of other engines beside plain programs: what the goal script compares, and which promises it counts as kept."""

import contextlib
from types import ModuleType
from typing import Any

import pytest

from harness.errors import UsageError
from harness.run.process.engines import python_for
from harness.spec import Sweep
from tests.engines.sweeps import COMPILED_SOON
from tests.goals import load
from tests.record.examples import cell

FIRST_STEPS = "2"
ONE, TWO_DEVICES, TWO_PROCESSES = {"replicas": 1}, {"replicas": 2}, {"workers": 2, "replicas": 1}


@pytest.fixture(scope="module")
def goal() -> ModuleType:
    """benchmarks/goals/engines.py."""
    return load("engines")


@pytest.mark.parametrize(
    ("engine", "placed", "ratio", "fixed_s", "kept"),
    [
        ("torch", TWO_PROCESSES, 1.02, 2.9, True),
        ("torch", TWO_PROCESSES, 1.04, 2.9, False),
        ("torch", TWO_PROCESSES, 0.96, 2.9, False),
        ("torch", TWO_PROCESSES, 1.02, 3.1, False),
        ("jax", TWO_DEVICES, 1.02, 3.1, False),
        ("jax", ONE, 1.02, 3.1, True),
        ("keras_distribution", TWO_DEVICES, 1.2, 3.1, True),
    ],
)
def test_a_promise_is_kept_within_its_bounds_and_none_is_made_of_keras_distribution(
    goal: ModuleType, engine: str, placed: dict[str, Any], ratio: float, fixed_s: float, kept: bool
) -> None:
    asked = cell().model_copy(update={"workers": 1, **placed})
    assert goal.kept(engine, asked, ratio, fixed_s) == kept


def test_every_engine_is_compared_in_two_processes_each_with_its_share_of_the_batch(goal: ModuleType) -> None:
    two = {engine: measured for engine, measured in goal.CASES if measured.workers == 2}
    assert set(two) == {"torch", "horovod", "jax", "keras_distribution"}
    for engine, measured in two.items():
        found = goal._commands(engine, "python", measured)
        assert [command[2:5] for command in found] == [["128", "0", "2"], ["128", "1", "2"]]
        assert len({command[5] for command in found}) == 1, "both go to one port"


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("engine", ["jax", "keras_distribution"])
def test_a_hand_written_program_of_two_processes_trains_a_window_at_a_time(goal: ModuleType, engine: str) -> None:
    try:
        python = python_for(Sweep(engine=[engine])) or ""
    except UsageError as error:
        pytest.skip(str(error))
    [measured] = [measured for of, measured in goal.CASES if of == engine and measured.workers == 2]
    small = measured.model_copy(update={"batch_size": 8, "global_batch_size": 16})
    commands = [[*command, FIRST_STEPS] for command in goal._commands(engine, python, small)]
    variables = goal._variables(small)
    variables["XLA_FLAGS"] += f" {COMPILED_SOON['XLA_FLAGS']}"
    program = goal.Program(commands, variables)
    with contextlib.closing(program):
        assert program.window(2) > 0
