"""`explain` of what `Model.fit` calls for each step, on devices of one process and of two: what is planted is in the
right part, and an instrument that lacks more, or that cannot be told from the whole step, is refused."""

from pathlib import Path

import pytest

from harness.record.explain import (
    ALONE,
    ARMS,
    EMPTY,
    FORWARD,
    FORWARD_BACKWARD,
    NO_INPUT,
    NO_REDUCTION,
    NO_UPDATE,
    REDUCTION,
    WHOLE,
)
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from tests.engines.explaining import explanation_of, must_be_most, must_hold_what_was_planted, one_block
from tests.engines.torch.planted import PLANTED_S, SLOW_INPUT, SLOW_UPDATE
from tests.explained import FEW

pytestmark = pytest.mark.slow
CUT = "batch:2,model:2"
KEYS = ("cross_device_op", "strategy", "workers", "replicas", "loop", "mesh")
CELLS = {
    ("auto", "distribution", 1, 2, "data_parallel", "batch:2"),
    (SLOW_INPUT, "multi_process", 2, 1, "data_parallel", ""),
    (SLOW_UPDATE, "distribution", 1, 2, "model_parallel", CUT),
}
"""Of each cell that is explained the values of KEYS, what is planted first."""
PART_OF = {SLOW_INPUT: "input", SLOW_UPDATE: "update"}
BETWEEN = (*FEW, REDUCTION, FORWARD_BACKWARD, ALONE)
"""Arms of two processes: with them each kind of instrument that has something of its own there."""


@pytest.fixture(scope="module")
def run(keras_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One block of each cell: with every arm of one that nothing is planted in and of one with a slow update of weights
    that are cut, and with a few of slow input in two processes."""
    folder: Path = tmp_path_factory.mktemp("explain")
    axes = {
        "engine": ["tests.engines.keras_distribution.planted:PlantedKeras"],
        "strategy": ["distribution", "multi_process"],
        "workers": [1, 2],
        "replicas": [1, 2],
        "loop": ["data_parallel", "model_parallel"],
        "mesh": ["batch:2", CUT],
        "cross_device_op": ["auto", SLOW_INPUT, SLOW_UPDATE],
        "model": ["mlp"],
        "batch_size": [8],
        "optimizer": ["sgd"],
        "engine_python": f"keras_distribution={keras_python}",
    }
    return one_block(
        folder,
        axes,
        lambda cell: tuple(map(cell.get, KEYS)) in CELLS,
        must_show_what_was_planted,
        lambda cell: BETWEEN if cell.cross_device_op == SLOW_INPUT else ARMS,
    )


def must_show_what_was_planted(run: Run) -> None:
    for op, part in PART_OF.items():
        must_be_most(explanation_of(run, op), part)
    must_hold_what_was_planted(explanation_of(run, SLOW_INPUT), "input", PLANTED_S)


def trials(run: Run, op: str) -> dict[str, TrialRecord]:
    cell_id = explanation_of(run, op).cell.cell_id
    return {str(trial.side): trial for trial in run.trials if trial.cell_id == cell_id}


def test_every_arm_is_measured_within_fit_and_the_parts_add_up_to_the_step(run: Run) -> None:
    plain = explanation_of(run, "auto")
    assert not plain.lacking
    assert sum(part.value for part in plain.parts) == pytest.approx(1)
    of = trials(run, "auto")
    assert of[WHOLE].status == "ok"
    assert set(of) == {WHOLE, NO_INPUT, NO_REDUCTION, NO_UPDATE, FORWARD_BACKWARD, FORWARD, EMPTY, REDUCTION}
    for arm in set(of) - {WHOLE}:
        assert (of[arm].status, of[arm].checks.gate, of[arm].checks.update) == ("unproved", "instrument", True)


def test_what_was_executed_shows_which_arms_add_gradients_up(run: Run) -> None:
    added_up = {arm: sum(trial.executed.pack_bytes) for arm, trial in trials(run, "auto").items()}
    of_all = {arm for arm, size in added_up.items() if size == 4 * 669_706}
    assert of_all == {WHOLE, NO_INPUT, NO_UPDATE, REDUCTION}
    assert not any(size for arm, size in added_up.items() if arm not in of_all)


def test_planted_causes_make_their_own_parts_the_largest_and_input_is_as_much_as_batches_are_late(run: Run) -> None:
    must_show_what_was_planted(run)


def test_an_instrument_that_lacks_something_else_too_is_refused_and_the_rest_is_told(run: Run) -> None:
    refused = explanation_of(run, SLOW_INPUT)
    assert set(refused.lacking) == {NO_UPDATE}
    assert "it reduces by nothing where the whole step does by 1 all-reduce" in refused.lacking[NO_UPDATE]
    assert {"input", "communication", "dispatch"} <= {part.name for part in refused.parts}


def test_where_weights_are_cut_only_what_leaves_their_exchange_alone_is_there(run: Run) -> None:
    cut = explanation_of(run, SLOW_UPDATE)
    assert set(cut.lacking) == {NO_REDUCTION, FORWARD_BACKWARD, FORWARD, REDUCTION}
    for arm, reason in cut.lacking.items():
        assert f"instrument '{arm}': weights are cut, so that devices exchange within forward and backward" in reason
    assert {part.name for part in cut.parts} == {"input", "update", "dispatch", "compute"}
