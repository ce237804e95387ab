"""`explain` of PyTorch's steps: what is planted in them is in the right part, and an instrument that lacks more is
refused."""

from pathlib import Path

import pytest

from harness.record.explain import ALONE, ARMS, EMPTY, NO_INPUT, NO_UPDATE, WHOLE, ExplainPlan
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from tests.engines.explaining import explanation_of, must_be_most, must_hold_what_was_planted, one_block
from tests.engines.torch.planted import PLANTED_S, SLOW_INPUT, SLOW_UPDATE
from tests.explained import FEW

pytestmark = pytest.mark.slow
PART_OF = {SLOW_INPUT: "input", SLOW_UPDATE: "update"}


@pytest.fixture(scope="module")
def run(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One block of each cell, where nothing is planted with every arm."""
    folder: Path = tmp_path_factory.mktemp("explain")
    axes = {
        "engine": ["tests.engines.torch.planted:PlantedTorch"],
        "strategy": ["data_parallel"],
        "workers": [2],
        "loop": ["ddp"],
        "cross_device_op": ["auto", SLOW_INPUT, SLOW_UPDATE],
        "model": ["mlp"],
        "batch_size": [8],
        "optimizer": ["sgd"],
        "prefetch": [0],  # else batches of the slow input are made in others' turns, and a step waits for fewer
        "engine_python": f"torch={torch_python}",
    }
    return one_block(
        folder,
        axes,
        shows=lambda run: [must_show_what_was_planted(run, op) for op in PART_OF],
        arms=lambda cell: FEW if cell.cross_device_op in PART_OF else ARMS,
    )


def must_show_what_was_planted(run: Run, op: str) -> None:
    slow = explanation_of(run, op)
    must_hold_what_was_planted(slow, PART_OF[op], PLANTED_S)
    must_be_most(slow, PART_OF[op])


def trials(run: Run, op: str) -> dict[str, TrialRecord]:
    return {str(trial.side): trial for trial in run.trials if trial.cell.get("cross_device_op") == op}


def test_every_arm_is_measured_and_the_parts_add_up_to_the_step(run: Run) -> None:
    plain = explanation_of(run, "auto")
    assert not plain.lacking
    assert sum(part.value for part in plain.parts) == pytest.approx(1)
    of = trials(run, "auto")
    [family, *_] = run.manifest.part(ExplainPlan).families
    assert set(of) == set(family.arms)
    assert of[WHOLE].status == "ok"
    for arm in set(of) - {WHOLE}:
        assert (of[arm].status, of[arm].checks.gate, of[arm].checks.update) == ("unproved", "instrument", True)


def test_what_was_executed_shows_which_arms_add_gradients_up(run: Run) -> None:
    added_up = {arm: sum(trial.executed.pack_bytes) for arm, trial in trials(run, "auto").items()}
    of_all = {arm for arm, size in added_up.items() if size == 4 * 669_706}
    assert of_all == {WHOLE, NO_INPUT, NO_UPDATE, "reduction"}
    assert {arm: size for arm, size in added_up.items() if arm not in of_all and size} == {"barrier": 4}


def test_the_replica_by_itself_is_called_as_it_is_in_company(run: Run) -> None:
    alone = trials(run, "auto")[ALONE].cell
    assert (alone.get("strategy"), alone.get("workers"), alone.get("global_batch_size")) == ("data_parallel", 1, 8)


@pytest.mark.parametrize("op", PART_OF)
def test_a_planted_cause_makes_its_own_part_grow(run: Run, op: str) -> None:
    must_show_what_was_planted(run, op)


def test_an_instrument_that_lacks_something_else_too_is_refused_and_the_rest_is_told(run: Run) -> None:
    refused = explanation_of(run, SLOW_INPUT)
    assert set(refused.lacking) == {NO_UPDATE}
    assert "it reduces by nothing where the whole step does by 2 all-reduce" in refused.lacking[NO_UPDATE]
    assert {"input", "communication", "dispatch"} <= {part.name for part in refused.parts}
    assert trials(run, SLOW_INPUT)[EMPTY].status == "unproved"
