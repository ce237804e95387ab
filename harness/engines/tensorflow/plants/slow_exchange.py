"""What workers and parameter servers exchange takes longer: weights come later, or gradients leave later."""

from collections.abc import Sequence
from typing import Any

from harness.engines.tensorflow.plants.base import Planted, PlantKind
from harness.errors import Unsupported
from harness.record.trial import Plant

MICROSECONDS = 1e6


class _Exchange(Planted):
    """Holds back what an update exchanges for `plant.each` seconds. It is in the update's own program, since a worker
    has no Python between two updates, and burns no processor time."""

    def __init__(self, plant: Plant, _: Sequence[str] = ()) -> None:
        if plant.each is None:
            raise Unsupported(f"plant: '{plant.kind}' is seconds of each update, and no share of it")
        self._each_s = plant.each

    def _held_back(self, values: Sequence[Any]) -> list[Any]:
        """`values` without a change, all of them once the last is there and the time is over; None stays."""
        import tensorflow as tf
        from tensorflow.python.data.experimental.ops.testing import sleep

        there = tuple(tf.convert_to_tensor(value) for value in values if value is not None)
        microseconds = round(MICROSECONDS * self._each_s)
        # The end of the data is asked for, too, and `take` has it without another sleep.
        slept = iter(tf.data.Dataset.from_tensors(there).apply(sleep(microseconds)).take(1).get_single_element())
        return [None if value is None else next(slept) for value in values]


class SlowPull(_Exchange):
    """The weights are there later."""

    def after_pull(self, weights: Sequence[Any]) -> list[Any]:
        """The weights, held back."""
        return self._held_back(weights)


class SlowPush(_Exchange):
    """The gradients leave later."""

    def before_push(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients, held back."""
        return self._held_back(gradients)


PLANTS = (
    PlantKind("slow_pull", "weights come later from the parameter servers", SlowPull, of_servers=True),
    PlantKind("slow_push", "gradients leave later for the parameter servers", SlowPush, of_servers=True),
)
