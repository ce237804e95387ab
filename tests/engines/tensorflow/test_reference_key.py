"""Which trials are held against one reference: those of which all that it is computed from is the same."""

import types
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.reference import _key
from harness.protocol.state import VariableState
from harness.spec.axes import TABLE
from harness.spec.cell import TrainingCell
from tests.axes import pair_of

X, Y = np.zeros((2, 3), np.float32), np.zeros(2, np.int32)
WEIGHTS = np.ones((3, 2), np.float32)


def key_of(cell: Any, x: Any = X, weights: Any = WEIGHTS, in_sync: int = 1) -> bytes:
    """What the reference of a trial of `cell` is kept under."""
    strategy = types.SimpleNamespace(num_replicas_in_sync=in_sync)
    training = types.SimpleNamespace(cell=cell, optimizer=None, batches=[(x, Y)], strategy=strategy)
    return _key(training, [VariableState("kernel", "weight", (weights,))])  # type: ignore[arg-type]


@pytest.mark.parametrize("key", TABLE)
def test_cells_that_differ_in_an_axis_have_a_reference_each_unless_its_entry_says_why_not(key: str) -> None:
    a, b = pair_of(key)
    alike = bool(TABLE[key].one_update) and a.replicas_per_update == b.replicas_per_update
    assert (key_of(a) == key_of(b)) == alike


def test_an_axis_of_which_nothing_is_said_keeps_references_apart() -> None:
    class Wider(TrainingCell):
        added: int = 0

    a, b = (Wider(**pair_of("xla")[0].model_dump(), added=n) for n in (0, 1))
    assert key_of(a) != key_of(b)


@pytest.mark.parametrize(
    "change", [{"x": X + 1}, {"x": X.reshape(3, 2)}, {"weights": WEIGHTS + 1}, {"weights": WEIGHTS.astype(np.float64)}]
)
def test_other_batches_and_other_weights_have_another_reference(change: dict[str, Any]) -> None:
    cell, _ = pair_of("xla")
    assert key_of(cell) == key_of(cell, X.copy(), WEIGHTS.copy())
    assert key_of(cell, **change) != key_of(cell)


def test_a_layer_that_hears_of_another_number_of_replicas_has_another_reference() -> None:
    cell, _ = pair_of("xla")
    assert key_of(cell, in_sync=2) != key_of(cell)
