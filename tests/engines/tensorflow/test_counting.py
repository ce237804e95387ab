"""How many updates steps should have made: what accumulation and loss scaling leave out is no update lost."""

import types
from dataclasses import dataclass
from typing import Any

import pytest

from harness.engines.tensorflow.counting import clips_what_it_is_given, updates_due


@dataclass(frozen=True)
class Number:
    value: float

    def numpy(self) -> float:
        return self.value


def counted(taken: int, **keys: Any) -> Any:
    return types.SimpleNamespace(_iterations=Number(taken), iterations=Number(taken), **keys)


def scaling(taken: int, scale: float) -> Any:
    """After `taken` steps that were not left out, with a scale that began at 2^15."""
    return types.SimpleNamespace(
        inner_optimizer=counted(taken), dynamic_scale=Number(scale), initial_scale=2.0**15, dynamic_growth_steps=2000
    )


def test_an_update_is_due_a_step_whatever_the_optimizer_has_counted() -> None:
    assert updates_due(counted(9), 10, 2) == (10, {})


def test_accumulation_owes_an_update_for_so_many_steps_and_says_so() -> None:
    due, remarks = updates_due(counted(662, gradient_accumulation_steps=2), 662, 1)
    assert (due, list(remarks)) == (331, ["accumulation"])


@pytest.mark.parametrize(
    ("steps", "taken", "scale", "due"),
    [
        (10, 8, 2.0**13, 8),  # halved twice
        (10, 8, 2.0**15, 10),  # the scale says that nothing was left out
        (4003, 4000, 2.0**14, 4000),  # halved three times, doubled twice
        (4003, 4000, 2.0**12, 4000),  # halved three times
        (4003, 4000, 2.0**11, 4003),  # three are missing, and it was halved at least four times
    ],
)
def test_what_loss_scaling_left_out_is_told_by_its_scale(steps: int, taken: int, scale: float, due: int) -> None:
    assert updates_due(scaling(taken, scale), steps, 2)[0] == due


def test_where_replicas_clip_their_own_gradients_that_is_said() -> None:
    assert "before the sum" in updates_due(counted(3, clipnorm=1.0), 3, 2)[1]["clipping"]
    assert updates_due(counted(3, clipnorm=1.0), 3, 1)[1] == {}


@pytest.mark.usefixtures("tf")
def test_what_the_gradients_of_several_steps_come_to_is_clipped_and_not_those_of_one() -> None:
    import keras

    assert clips_what_it_is_given(keras.optimizers.SGD(clipnorm=1.0))
    assert not clips_what_it_is_given(keras.optimizers.SGD(clipnorm=1.0, gradient_accumulation_steps=2))
