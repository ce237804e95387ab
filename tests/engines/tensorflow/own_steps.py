"""Training steps as users might write them, right and wrong, for `test_own_step.py`."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf


class Linear:
    """A weight that learns to be 3; `noise` is added to the target while the step is traced or run."""

    def __init__(self, noise: Callable[[], Any] = lambda: 0.0) -> None:
        self.weight = tf.Variable(float(np.random.default_rng(0).random()))
        self.noise = noise

    def __call__(self) -> Any:
        return self.train()

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def train(self) -> Any:
        with tf.GradientTape() as tape:
            loss = (self.weight - 3.0 - self.noise()) ** 2
        self.weight.assign_sub(0.1 * tape.gradient(loss, self.weight))
        return loss


def right() -> Linear:
    return Linear()


def right_as_a_float() -> Callable[[], float]:
    step = Linear()
    return lambda: float(step())


class Signed(Linear):
    """Takes the sign of its gradient, which hides how large it is."""

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def train(self) -> Any:
        with tf.GradientTape() as tape:
            loss = (self.weight - 3.0) ** 2
        self.weight.assign_sub(0.1 * tf.sign(tape.gradient(loss, self.weight)))
        return loss


class ByHand(Linear):
    """Works its gradient out by itself."""

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def train(self) -> Any:
        loss = (self.weight - 3.0) ** 2
        self.weight.assign_sub(0.1 * 2 * (self.weight - 3.0))
        return loss


class WithAdam(Linear):
    """Keras' Adam, whose update hides how large a gradient is, on a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = keras.layers.Dense(1, kernel_initializer="ones")
        self.layer.build((None, 1))
        self.optimizer = keras.optimizers.Adam(0.1)
        self.optimizer.build(self.layer.trainable_weights)

    def scale(self) -> float:
        """What the gradient is multiplied by."""
        return 1.0

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def train(self) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((self.layer(tf.ones((1, 1))) - 3.0) ** 2)
        weights = self.layer.trainable_weights
        gradients = [self.scale() * gradient for gradient in tape.gradient(loss, weights)]
        self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss


class TwiceCompiled(WithAdam):
    """Its compiled form gives Adam twice the gradient."""

    def scale(self) -> float:
        return 1.0 if tf.executing_eagerly() else 2.0


def frozen_random() -> Linear:
    """NumPy draws once, while the step is traced: a well-known mistake."""
    return Linear(noise=lambda: float(np.random.random()))


class Declared(Linear):
    """Draws random numbers that a compiled program draws differently, and says so."""

    eager_reference = False

    def __init__(self) -> None:
        super().__init__(noise=lambda: tf.random.uniform([]))


def declared() -> Declared:
    return Declared()


def draws_in_its_program() -> Linear:
    """TensorFlow draws other numbers in a tf.function than outside."""
    return Linear(noise=lambda: tf.random.uniform([]))


def draws_in_its_data() -> Linear:
    """The same numbers compiled or not, but a compiled step leaves out the gradient."""
    step = Linear(noise=lambda: 0.0 if tf.executing_eagerly() else 1.0)
    numbers = iter(tf.data.Dataset.range(1_000_000).map(lambda _: tf.random.uniform([])))
    return lambda: step() + 0.0 * next(numbers)


def draws_without_a_seed() -> Callable[[], Any]:
    """NumPy's generator begins with what the system gives it."""
    step, generator = Linear(), np.random.default_rng()

    def noisy() -> Any:
        step.weight.assign_add(float(generator.random()))
        return step()

    return noisy


class DropsByXla(WithAdam):
    """XLA draws other numbers from the seed of Keras' Dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = keras.layers.Dropout(0.5, seed=1)

    @tf.function(autograph=False, jit_compile=True)  # type: ignore[untyped-decorator]
    def train(self) -> Any:
        with tf.GradientTape() as tape:
            dropped = self.dropout(tf.ones((1, 64)), training=True)
            loss = tf.reduce_sum((self.layer(tf.ones((1, 1))) - tf.reduce_sum(dropped)) ** 2)
        weights = self.layer.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss


def only_compiled() -> Linear:
    """Cannot run uncompiled."""

    def noise() -> float:
        if tf.executing_eagerly():
            raise RuntimeError("this works in a graph alone")
        return 0.0

    return Linear(noise)


def soon_not_finite() -> Callable[[], float]:
    losses = iter([3.0, 2.0, 1.0, *[float("nan")] * 1_000_000])
    return lambda: next(losses)


class Checked(Linear):
    """Has a check of its own, which answers `answers` in turn."""

    answers: tuple[Any, ...] = (True, True)

    def __init__(self) -> None:
        super().__init__()
        self._answers = iter(self.answers)

    def check(self) -> Any:
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


class CheckedAndWrong(Checked):
    answers = (True, False)


class CheckedAndRaising(Checked):
    answers = (ValueError("the queue is empty"),)


def data_ends() -> Callable[[], float]:
    losses = iter([3.0, 2.0, 1.0, 0.5])
    return lambda: next(losses)


def raises_later() -> Callable[[], float]:
    losses = iter([3.0, 2.0, 1.0, 0.5])
    return lambda: {0.5: []}.get(next(losses), [1.0])[0]


def two_losses() -> Callable[[], Any]:
    return lambda: tf.constant([1.0, 2.0])


def raises() -> Callable[[], float]:
    raise ValueError("no licence for this data set")


def no_step() -> str:
    return "a step"


def wants_a_batch() -> Callable[[Any], float]:
    return lambda batch: float(len(batch))
