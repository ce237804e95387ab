"""A model that is built again: the same where its function draws what is seeded, else nothing can be proved by it."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.reference import continue_reference, run_reference
from harness.engines.tensorflow.state import capture
from harness.errors import Unprovable
from tests.engines.tensorflow.referenced import BATCHES, check, of_one_process, training

WIDTH = 4
GENERATOR = np.random.default_rng(3)


def times(draw: Callable[[], Any]) -> list[Any]:
    """A layer whose outputs are multiplied by what it drew when it was made, another when it was built, no weights."""
    import keras

    class Times(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = draw()

        def build(self, _: Any) -> None:
            self.second = draw()

        def call(self, x: Any) -> Any:
            return x * self.first + self.second

    return [keras.layers.Dense(WIDTH), Times()]


def test_constants_that_a_function_draws_from_what_is_seeded_are_the_references_too(tf: Any) -> None:
    import keras

    def draw() -> Any:
        of_numpy = np.random.normal(size=(1, WIDTH)).astype(np.float32)
        return of_numpy + random.random() * tf.random.normal((1, WIDTH)) + keras.random.normal((1, WIDTH))

    of = training(tf, lambda: times(draw), 2)
    check(of)
    run_reference(of_one_process(of), capture(of.model, of.optimizer))
    assert not of.unprovable


def test_constants_of_a_generator_that_goes_on_between_builds_leave_first_and_late_updates_unproved(tf: Any) -> None:
    of = of_one_process(training(tf, lambda: times(lambda: GENERATOR.normal(size=WIDTH).astype(np.float32)), 2))
    state = capture(of.model, of.optimizer)
    with pytest.raises(Unprovable, match="function builds another model each time") as first:
        run_reference(of, state)
    with pytest.raises(Unprovable) as late:
        continue_reference(of, state, BATCHES[1], None)
    assert str(late.value) == str(first.value)


def test_a_function_that_builds_other_variables_each_time_leaves_updates_unproved(tf: Any) -> None:
    import keras

    of = of_one_process(training(tf, lambda: [keras.layers.Dense(int(GENERATOR.integers(2, 10**4)))], 2))
    state = capture(of.model, of.optimizer)
    with pytest.raises(Unprovable, match="function builds another model each time"):
        run_reference(of, state)
    with pytest.raises(Unprovable, match="function builds another model each time"):
        continue_reference(of, state, BATCHES[1], None)


def test_noise_that_is_drawn_anew_in_each_call_is_no_other_model(tf: Any) -> None:
    import keras

    class Noisy(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x + 0.1 * tf.random.normal(tf.shape(x))

    of = of_one_process(training(tf, lambda: [keras.layers.Dense(WIDTH), Noisy()], 2))
    run_reference(of, capture(of.model, of.optimizer))
    assert not of.unprovable


def test_in_half_precision_what_a_program_rounds_otherwise_than_eager_operations_counts_as_noise(tf: Any) -> None:
    import keras

    class Fused(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return 1.5 * x if tf.inside_function() else x

    for dtype, counts in (("mixed_bfloat16", True), ("float32", False)):
        layers = lambda dtype=dtype: [keras.layers.Dense(WIDTH, dtype=dtype), Fused()]  # noqa: E731
        of = of_one_process(training(tf, layers, 2))
        reference = run_reference(of, capture(of.model, of.optimizer))
        assert (reference.loss_noise[0] > 0.02 * reference.losses[0]) is counts
