"""The reference of optimizers that clip gradients or do more with them."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.reference.update import SingleDevice, times_gradient
from harness.engines.tensorflow.state import capture
from harness.errors import Unprovable
from tests.engines.tensorflow.referenced import BATCHES, check, training


@pytest.mark.parametrize("clip", [{"clipnorm": 0.01}, {"global_clipnorm": 0.02}, {"clipvalue": 0.003}])
def test_keras_clips_what_each_replica_has_before_it_is_summed_and_so_does_the_reference(
    tf: Any, clip: dict[str, float]
) -> None:
    check(training(tf, lambda: [], 2, **clip))


CLIPS: list[dict[str, Any]] = [
    {"clipnorm": 0.01},
    {"kind": "Adam", "global_clipnorm": 0.001},
    {"clipvalue": 0.0003},
    {"clipnorm": 0.01, "precision": "mixed_float16"},
]


@pytest.mark.parametrize("options", CLIPS)
def test_one_replica_clips_before_a_gradient_is_doubled_so_that_a_clip_does_not_hide_it(
    tf: Any, options: dict[str, Any]
) -> None:
    of = training(tf, lambda: [], 1, **options)
    start = [state.copies[0] for state in capture(of.model, of.optimizer)]
    check(of)
    device, states = SingleDevice(of), []
    for factor in (1, 2):
        own = device.start(start)
        for number, batch in enumerate(BATCHES, start=1):
            given = device.shares(batch, own)
            if number == 2:
                [share] = given
                given = [dataclasses.replace(share, gradients=[times_gradient(g, factor) for g in share.gradients])]
            device.apply(given)
        states.append([*device.state(own)])
    apart = max(np.abs(a - b).max() for a, b in zip(*states, strict=True))
    assert apart > 1e-5


def test_an_own_class_that_may_change_gradients_before_it_clips_them_clips_them_itself_and_for_several_is_unprovable(
    tf: Any,
) -> None:
    import keras

    class Centred(keras.optimizers.SGD):  # type: ignore[misc]
        def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
            super()._backend_apply_gradients([g - tf.reduce_mean(g) for g in grads], trainable_variables)

    keras.optimizers.Centred = Centred
    try:
        check(training(tf, lambda: [], 1, kind="Centred", clipnorm=0.01))
        with pytest.raises(Unprovable, match="may change gradients before it clips them"):
            SingleDevice(training(tf, lambda: [], 2, kind="Centred", clipnorm=0.01))
    finally:
        del keras.optimizers.Centred


def test_an_own_class_that_may_change_gradients_before_they_are_summed_is_unprovable_for_several(tf: Any) -> None:
    import keras

    def kind(method: str) -> Any:
        def less(self: Any, grads: Any, *more: Any) -> Any:
            return getattr(keras.optimizers.SGD, method)(self, [tf.tanh(g) for g in grads], *more)

        return type("Bounded", (keras.optimizers.SGD,), {method: less})

    try:
        for method in ("apply", "_backend_apply_gradients", "_clip_gradients", "_backend_update_step"):
            keras.optimizers.Bounded = kind(method)
            check(training(tf, lambda: [], 1, kind="Bounded"))
            with pytest.raises(
                Unprovable, match=r"^Bounded may change gradients before they are summed, on each replica"
            ):
                SingleDevice(training(tf, lambda: [], 2, kind="Bounded"))
    finally:
        del keras.optimizers.Bounded


def test_several_optimizers_in_one_are_proved_unless_one_of_them_clips(tf: Any) -> None:
    import keras

    def several(_: Any, **clip: float) -> Any:
        biases = keras.optimizers.Adam(0.01, **clip)
        return keras.optimizers.MultiOptimizer(
            keras.optimizers.OptimizerMap(keras.optimizers.SGD(), {".*bias": biases})
        )

    keras.optimizers.Several = several
    try:
        check(training(tf, lambda: [], 2, kind="Several"))
        check(training(tf, lambda: [], 1, kind="Several", clipnorm=0.001))
        with pytest.raises(Unprovable, match=r"^MultiOptimizer may change gradients before they are summed"):
            SingleDevice(training(tf, lambda: [], 2, kind="Several", clipnorm=0.001))
    finally:
        del keras.optimizers.Several


def test_optimizers_of_keras_own_that_do_more_than_the_others_are_proved_for_several(tf: Any) -> None:
    for options in ({}, {"clipnorm": 0.01}):
        check(training(tf, lambda: [], 2, kind="Nadam", **options))
