"""`explain` of Horovod's steps: what is planted in them is in the right part, and an instrument that lacks more is
refused."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.explain import explanations_of
from harness.record.explain import ALONE, ARMS, IN_ONE_CALL, NO_INPUT, NO_UPDATE, REDUCTION, WHOLE, ExplainPlan
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.spec.cell import TrainingCell
from tests.engines.explaining import explanation_of, must_be_most, must_hold_what_was_planted, one_block
from tests.engines.horovod.swept import MLP, TENSORS, WRAPPERS
from tests.engines.torch.planted import PLANTED_S, SLOW_INPUT
from tests.explained import FEW

pytestmark = pytest.mark.slow
CYCLE_MS = 40
"""Several times a step of the perceptron: so long a step waits for its gradients."""


def explained(
    folder: Path,
    python: str,
    keeps: Callable[[TrainingCell], bool],
    shows: Callable[[Run], object],
    arms: Callable[[TrainingCell], Collection[str]] = lambda _: ARMS,
    **axes: Any,
) -> Run:
    """One block of each cell that is kept."""
    of_all = {**MLP, "strategy": ["data_parallel"], "engine_python": f"horovod={python}"}
    return one_block(folder, {**of_all, **axes}, keeps, shows, arms)


def must_show_the_cycle(run: Run) -> None:
    slow = explanation_of(run, "auto")
    must_be_most(slow, "communication")
    assert slow.part("communication").value * (slow.step_time_s or 0) > CYCLE_MS / 1000 / 2


def must_show_the_input(run: Run) -> None:
    must_be_most(explanation_of(run, SLOW_INPUT), "input")
    must_hold_what_was_planted(explanation_of(run, SLOW_INPUT), "input", PLANTED_S)


def must_show_the_update(run: Run, loop: str) -> None:
    [slow] = [one for one in explanations_of(run) if one.cell.get("loop") == loop]
    must_be_most(slow, "update")
    must_hold_what_was_planted(slow, "update", PLANTED_S)


@pytest.fixture(scope="module")
def run(horovod_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of a cell whose cycle is long with every arm, and with a few of one whose input is slow."""
    axes = {
        "engine": ["tests.engines.horovod.planted:PlantedHorovod"],
        "workers": [2],
        "loop": ["tape"],
        "cross_device_op": ["auto", SLOW_INPUT],
        "data": ["digits"],
        "cycle_time": [0, CYCLE_MS],
        "prefetch": [0],  # else batches of the slow input are made in others' turns, and a step waits for none
    }
    return explained(
        tmp_path_factory.mktemp("explain"),
        horovod_python,
        lambda cell: (cell.cross_device_op == "auto") == bool(cell.cycle_time),
        lambda run: (must_show_the_cycle(run), must_show_the_input(run)),
        lambda cell: FEW if cell.cross_device_op == SLOW_INPUT else ARMS,
        **axes,
    )


@pytest.fixture(scope="module")
def slow_updates(horovod_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of the loops that are right in one process only, whose updates are slow."""
    engine = "tests.engines.horovod.planted:SlowHorovod"
    folder = tmp_path_factory.mktemp("slow")
    axes = {"engine": [engine], "workers": [1], "loop": list(WRAPPERS)}
    return explained(
        folder,
        horovod_python,
        lambda _: True,
        lambda run: [must_show_the_update(run, loop) for loop in WRAPPERS],
        **axes,
    )


def trials(run: Run, op: str) -> dict[str, TrialRecord]:
    [cell_id] = [family.cell_id for family in run.manifest.part(ExplainPlan).families if of_op(run, family.cell_id, op)]
    families = run.manifest.part(ExplainPlan).families
    return {str(t.side): t for t in run.trials if families[t.block % len(families)].cell_id == cell_id}


def of_op(run: Run, cell_id: str, op: str) -> bool:
    return any(cell.cell_id == cell_id and cell.get("cross_device_op") == op for cell in run.manifest.cells)


def test_every_arm_but_a_barrier_is_measured_and_the_parts_add_up_to_the_step(run: Run) -> None:
    assert not explanation_of(run, "auto").lacking
    assert sum(part.value for part in explanation_of(run, "auto").parts) == pytest.approx(1)
    of, family = trials(run, "auto"), run.manifest.part(ExplainPlan).families[0]
    assert set(of) == set(family.arms)
    assert of[WHOLE].status == "ok"
    for arm in set(of) - {WHOLE}:
        assert (of[arm].status, of[arm].checks.gate, of[arm].checks.update) == ("unproved", "instrument", True)


def test_what_was_executed_shows_which_arms_average_gradients(run: Run) -> None:
    averages = {arm: trial.executed.operations for arm, trial in trials(run, "auto").items() if arm != ALONE}
    of_all = {arm for arm, operations in averages.items() if operations == {"HorovodAllreduce": TENSORS}}
    assert of_all == {WHOLE, NO_INPUT, NO_UPDATE, REDUCTION, IN_ONE_CALL}
    assert not any(operations for arm, operations in averages.items() if arm not in of_all)


def test_waiting_for_a_long_cycle_is_communication(run: Run) -> None:
    must_show_the_cycle(run)


def test_batches_that_come_late_are_input(run: Run) -> None:
    must_show_the_input(run)


def test_an_instrument_that_lacks_something_else_too_is_refused_and_the_rest_is_told(run: Run) -> None:
    refused = explanation_of(run, SLOW_INPUT)
    assert set(refused.lacking) == {NO_UPDATE}
    words = f"it reduces by nothing where the whole step does by {TENSORS} HorovodAllreduce"
    assert words in refused.lacking[NO_UPDATE]
    assert {"input", "communication", "dispatch"} <= {part.name for part in refused.parts}


@pytest.mark.parametrize("loop", WRAPPERS)
def test_a_slow_update_is_update_in_the_loops_that_are_right_in_one_process(slow_updates: Run, loop: str) -> None:
    [slow] = [one for one in explanations_of(slow_updates) if one.cell.get("loop") == loop]
    assert not slow.lacking
    must_show_the_update(slow_updates, loop)
