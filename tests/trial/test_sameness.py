"""Digests of what a trial began with and of what it was fed: alike for what is alike, however it lies."""

import numpy as np
import pytest

from harness.protocol.state import VariableState
from harness.trial.sameness import LOOKED_AT, LabelsSeen, digest_of_weights

KERNEL, BIAS = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32), np.arange(5, dtype=np.float32)


def state(**weights: np.ndarray) -> list[VariableState]:
    return [VariableState(name, "weight", (value,)) for name, value in weights.items()]


def test_weights_have_one_digest_in_every_layout_and_order_and_by_every_name() -> None:
    as_keras = digest_of_weights(state(kernel=KERNEL, bias=BIAS))
    slot = VariableState("velocity", "slot:momentum", (KERNEL,))
    assert as_keras == digest_of_weights([*state(bias=BIAS, weight=KERNEL.transpose(2, 0, 1).copy()), slot])
    assert len(as_keras) == 16


@pytest.mark.parametrize("other", [BIAS + np.float32(1e-6), BIAS[:4], np.zeros(5, np.float32)])
def test_other_values_have_another_digest(other: np.ndarray) -> None:
    assert digest_of_weights(state(kernel=KERNEL, bias=BIAS)) != digest_of_weights(state(kernel=KERNEL, bias=other))


def seen(batches: list[list[int]], dtype: str = "int32") -> str:
    found = LabelsSeen()
    for labels in batches:
        found.take(np.array(labels, dtype))
    return found.digest


def test_labels_have_the_digest_of_their_order_in_the_first_batches() -> None:
    batches = [[number, 1, 2] for number in range(LOOKED_AT)]
    assert seen(batches) == seen(batches, "int64") == seen([*batches, [7, 7, 7]])
    assert seen(batches) != seen([batches[1], batches[0], *batches[2:]])
    assert seen(batches[1:]) == "", "fewer tell nothing"
