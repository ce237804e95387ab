"""What later trials of a run are held against is what an earlier one has computed, and is as strict."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.protocol.state import Reference, VariableState
from harness.trial.judgement import check_mean_losses, check_update
from harness.trial.reference_cache import cached_reference
from tests.trial.lines import REPLICAS, LineTrainer


def test_what_has_no_gradient_is_kept_too(tmp_path: Path) -> None:
    idle = np.array([True, False, True])
    made = Reference([[np.ones(3, np.float32)]], [[0.0]], [~idle], idle=[idle])
    for _ in range(2):
        kept = cached_reference(str(tmp_path), b"idle", lambda: made)
        assert [mask.tolist() for mask in kept.idle] == [idle.tolist()]
        assert [mask.tolist() for mask in kept.trusted] == [(~idle).tolist()]


def told(reference: Reference) -> list[Any]:
    """All that is in it, as it can be compared."""
    arrays = [*(a for state in reference.states for a in state), *reference.trusted]
    numbers = (reference.noise, list(reference.losses), list(reference.loss_noise), reference.arithmetic)
    return [[(str(a.dtype), a.tolist()) for a in arrays], *numbers, dict(reference.sight or {}), reference.few]


def states_of(reference: Reference, factor: float = 1.0) -> list[list[VariableState]]:
    """What a step that does as the reference does leaves behind on every replica, but for a factor on the weight."""
    initial = LineTrainer("").initial
    return [
        [
            VariableState(of.name, of.kind, (value * np.float32(factor) if of.kind == "weight" else value,) * REPLICAS)
            for value, of in zip(values, initial, strict=True)
        ]
        for values in reference.states
    ]


def test_a_later_trial_of_a_cell_takes_the_reference_of_an_earlier_one_to_the_last_bit(tmp_path: Path) -> None:
    first, later, alone = LineTrainer(str(tmp_path)), LineTrainer(str(tmp_path)), LineTrainer("")
    assert told(first.found()) == told(later.found()) == told(alone.found())
    assert first._single.asked == alone._single.asked > 0
    assert later._single.asked == 0


def test_what_an_earlier_trial_has_computed_is_as_strict_as_what_this_one_would(tmp_path: Path) -> None:
    LineTrainer(str(tmp_path)).found()
    later, alone = LineTrainer(str(tmp_path)), LineTrainer("")
    kept, own = later.found(), alone.found()
    assert check_update(states_of(kept), later.initial, kept).evidence is None
    wrong = states_of(kept, 1.01)
    said = check_update(wrong, later.initial, kept)
    assert said.evidence is not None
    assert said == check_update(wrong, alone.initial, own)
    losses = [loss * 1.01 for loss in own.losses]
    evidence = check_mean_losses(losses, kept)
    assert evidence is not None
    assert evidence == check_mean_losses(losses, own)


@pytest.mark.parametrize("other", [{"cell_id": "two"}, {"seed": 2}, {"start": 0.25}, {"batches": 8}])
def test_another_cell_seed_start_or_batch_has_a_reference_of_its_own(tmp_path: Path, other: dict[str, Any]) -> None:
    LineTrainer(str(tmp_path)).found()
    another = LineTrainer(str(tmp_path), **other)
    another.found()
    assert another._single.asked > 0


def test_a_replica_that_begins_with_another_state_has_a_reference_of_its_own(tmp_path: Path) -> None:
    LineTrainer(str(tmp_path)).found()
    another = LineTrainer(str(tmp_path))
    weight = another.initial[0]
    another.initial[0] = VariableState(weight.name, weight.kind, (weight.copies[0], weight.copies[1] + 1))
    another.found()
    assert another._single.asked > 0


def test_all_of_a_reference_is_kept(tmp_path: Path) -> None:
    whole = Reference(
        states=[[np.float32([1, 2]), np.int32(1)], [np.float32([3, 4]), np.int32(2)]],
        noise=[[0.1, 0.0], [0.2, 0.0]],
        trusted=[np.array([True, False])],
        losses=[0.5, 0.25],
        loss_noise=[1e-6, 2e-6],
        arithmetic="mixed_bfloat16",
        sight={"missing": 20.0, "doubled": 30.0},
        few=1e-4,
    )
    for _ in range(2):
        assert told(cached_reference(str(tmp_path), b"key", lambda: whole)) == told(whole)
