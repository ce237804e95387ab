"""What is read of replicas' variables."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from harness.engines.tensorflow.state import capture


def variable(*copies: list[float]) -> Any:
    """A Keras variable with a copy a replica."""
    arrays = [np.array(copy) for copy in copies]
    values = [SimpleNamespace(numpy=lambda array=array: array) for array in arrays]
    return SimpleNamespace(path="layer/w", value=SimpleNamespace(values=values))


def test_copies_that_hold_the_same_are_one_array_and_others_stay_as_they_are() -> None:
    alike, apart = variable([1, 2], [1, 2], [1, 2]), variable([1, 2], [1, 2], [1, 3], [1, 3])
    model = SimpleNamespace(variables=[alike, apart], trainable_variables=[alike])
    first, second = capture(model, SimpleNamespace(variables=[]))
    assert (first.kind, second.kind) == ("weight", "statistic")
    assert len(first.copies) == 3
    assert {id(copy) for copy in first.copies} == {id(first.copies[0])}
    assert [copy.tolist() for copy in second.copies] == [[1, 2], [1, 2], [1, 3], [1, 3]]
    assert second.copies[0] is second.copies[1]


def test_what_is_no_number_in_both_is_alike_and_zeros_of_two_signs_are_not() -> None:
    broken = variable([np.nan, 0.0], [np.nan, 0.0], [np.nan, -0.0])
    [state] = capture(SimpleNamespace(variables=[broken], trainable_variables=[broken]), SimpleNamespace(variables=[]))
    first, second, third = state.copies
    assert first is second
    assert np.signbit(third[1])
