"""Optimizers by name, and a compiled model's own."""

from typing import Any

import pytest

from harness.engines.tensorflow.workloads import OPTIMIZERS, optimizer_of
from harness.errors import UsageError


@pytest.fixture
def model(tf: Any) -> Any:  # noqa: ARG001 - sets TensorFlow up
    import keras

    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])


@pytest.mark.parametrize(("name", "slots"), [("adam", 2), ("sgd", 0), ("momentum", 1)])
def test_each_name_gives_the_slots_it_promises(model: Any, name: str, slots: int) -> None:
    optimizer = optimizer_of(model, name)
    optimizer.build(model.trainable_variables)
    step_count_and_rate = 2
    assert len(optimizer.variables) - step_count_and_rate == slots * len(model.trainable_variables)
    assert name in OPTIMIZERS


def test_an_unknown_name_is_a_usage_error(model: Any) -> None:
    with pytest.raises(UsageError, match=r"^optimizer: 'adamm' is not one of adam, sgd, momentum; did you mean 'adam'"):
        optimizer_of(model, "adamm")


def test_a_compiled_model_brings_its_own_fresh(model: Any) -> None:
    import keras

    schedule = keras.optimizers.schedules.CosineDecay(0.25, decay_steps=10)
    model.compile(optimizer=keras.optimizers.AdamW(schedule, weight_decay=0.5), loss="mse")
    model.optimizer.build(model.trainable_variables)
    model.optimizer.iterations.assign(7)
    fresh = optimizer_of(model, "sgd")
    assert fresh is not model.optimizer
    assert isinstance(fresh, keras.optimizers.AdamW)
    assert (float(fresh.learning_rate), fresh.weight_decay, int(fresh.iterations)) == (0.25, 0.5, 0)


def test_loss_scaling_is_left_to_the_caller(model: Any) -> None:
    import keras

    model.compile(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.RMSprop(0.5)), loss="mse")
    fresh = optimizer_of(model, "sgd")
    assert isinstance(fresh, keras.optimizers.RMSprop)
    assert float(fresh.learning_rate) == 0.5


def test_a_schedule_of_the_users_own_need_not_be_registered(model: Any) -> None:
    import keras

    class Falling(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        def __call__(self, step: Any) -> Any:
            return 0.5 / (1.0 + keras.ops.cast(step, "float32"))

        def get_config(self) -> dict[str, Any]:
            return {}

    model.compile(optimizer=keras.optimizers.SGD(Falling()), loss="mse")
    assert float(optimizer_of(model, "adam").learning_rate) == 0.5
