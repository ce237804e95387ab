"""Faults to plant: cross-device ops and models that compute the wrong thing.

Each `*_op` is named on the command line as `--cross-device-op tests.planted:dropped_op`.
"""

from typing import Any

import tensorflow as tf

LATE = 7
"""Calls after which a late fault begins: by then the gate's first updates have been proved, and windows are timed."""


class Faulty(tf.distribute.ReductionToOneDevice):  # type: ignore[misc]
    """Reduces rightly, but for what `before` does to the values and `after` to the results."""

    def batch_reduce_implementation(self, reduce_op: Any, pairs: Any, options: Any) -> Any:
        changed = []
        for position, (value, destination) in enumerate(pairs):
            parts = list(value.values)
            for i, part in enumerate(parts):
                with tf.device(part.device):
                    parts[i] = self.before(i, position, tf.identity(part))
            changed.append((type(value)(tuple(parts)), destination))
        results = super().batch_reduce_implementation(reduce_op, changed, options)
        return [self._changed(result, position) for position, result in enumerate(results)]

    def _changed(self, result: Any, position: int) -> Any:
        parts = list(result.values)
        for i, part in enumerate(parts):
            with tf.device(part.device):
                parts[i] = self.after(i, position, part, len(parts))
        return type(result)(tuple(parts))

    def before(self, replica: int, position: int, value: Any) -> Any:
        return value

    def after(self, replica: int, position: int, value: Any, n: int) -> Any:
        return value


class Dropped(Faulty):
    def before(self, replica: int, position: int, value: Any) -> Any:
        return tf.zeros_like(value) if replica == 1 else value


class DroppedInOneTensor(Faulty):
    def before(self, replica: int, position: int, value: Any) -> Any:
        return tf.zeros_like(value) if (replica, position) == (1, 3) else value


class QuietlyDropped(Faulty):
    """Right for the gate's own few tensors, wrong for a model's many: only the update shows it."""

    def batch_reduce_implementation(self, reduce_op: Any, pairs: Any, options: Any) -> Any:
        if len(pairs) > 4:
            return super().batch_reduce_implementation(reduce_op, pairs, options)
        return tf.distribute.ReductionToOneDevice.batch_reduce_implementation(self, reduce_op, pairs, options)

    def before(self, replica: int, position: int, value: Any) -> Any:
        return tf.zeros_like(value) if replica == 1 else value


class Doubled(Faulty):
    def before(self, replica: int, position: int, value: Any) -> Any:
        return 2 * value if replica == 1 else value


class Mean(Faulty):
    def after(self, replica: int, position: int, value: Any, n: int) -> Any:
        return value / n


class Delayed(Faulty):
    """Gives the sum of the step before; the first step gets its own, as a pipeline being filled would."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[Any, Any] = {}

    def after(self, replica: int, position: int, value: Any, n: int) -> Any:
        key = (replica, position, tuple(value.shape))
        if key not in self._held:
            with tf.init_scope():
                self._held[key] = (tf.Variable(tf.zeros(value.shape)), tf.Variable(False))
        kept, filled = self._held[key]
        before = tf.where(filled.read_value(), kept.read_value(), value)
        with tf.control_dependencies([before]):
            stored = [kept.assign(value), filled.assign(True)]
        with tf.control_dependencies(stored):
            return tf.identity(before)


class LateDropped(Faulty):
    """Right until each tensor has been reduced LATE times; then the value of the second replica is missing."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[Any, Any] = {}

    def before(self, replica: int, position: int, value: Any) -> Any:
        if replica != 1:
            return value
        key = (position, tuple(value.shape))
        if key not in self._calls:
            with tf.init_scope():
                self._calls[key] = tf.Variable(0)
        return value * tf.cast(self._calls[key].assign_add(1) <= LATE, value.dtype)


class NeverUpdated(Faulty):
    """The last replica gets zeros instead of the sum."""

    def after(self, replica: int, position: int, value: Any, n: int) -> Any:
        return tf.zeros_like(value) if replica == n - 1 else value


class Rounded(Faulty):
    """Loses precision on the way, as a compressed all-reduce would."""

    def before(self, replica: int, position: int, value: Any) -> Any:
        return tf.cast(tf.cast(value, tf.bfloat16), tf.float32)


class NotANumber(Faulty):
    def before(self, replica: int, position: int, value: Any) -> Any:
        return value * float("nan") if replica == 1 else value


dropped_op, dropped_in_one_tensor_op, doubled_op, mean_op = Dropped, DroppedInOneTensor, Doubled, Mean
quietly_dropped_op = QuietlyDropped
delayed_op, never_updated_op, rounded_op, nan_op = Delayed, NeverUpdated, Rounded, NotANumber
late_dropped_op = LateDropped


def nan_model() -> Any:
    """A model whose loss is not a number."""
    import keras

    return keras.Sequential(
        [keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10), __getattr__("Log")()]
    )


def skipping_model() -> Any:
    """A model whose optimizer silently skips every third update."""
    return _compiled_with(__getattr__("Skipping")(1e-3))


def late_doubling_model() -> Any:
    """A model whose optimizer takes every gradient twice once it has made LATE updates."""
    return _compiled_with(__getattr__("LateDoubling")(1e-3))


def _compiled_with(optimizer: Any) -> Any:
    import keras

    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def hanging_model() -> Any:
    """Never returns."""
    import time

    time.sleep(3600)


def crashing_model() -> Any:
    """Ends the process as a fault in native code would."""
    import ctypes

    ctypes.string_at(0)


def hungry_model() -> Any:
    """Raises as TensorFlow does when a tensor does not fit."""
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[1000000,1000000]")


def _late(action: Any) -> Any:
    """A model that behaves until its third turn at the clock, and then does `action` in a step."""
    import keras

    from harness.trial.clock import Clock

    begin, rounds = Clock.begin, [0]

    def noted(clock: Clock) -> int:
        steps = begin(clock)
        rounds[0] = clock._round
        return steps

    Clock.begin = noted  # type: ignore[method-assign]  this process is the trial's own

    class Late(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            def step(value: Any) -> Any:
                if rounds[0] >= 2:
                    action()
                return value

            out = tf.numpy_function(step, [tf.stop_gradient(x)], tf.float32)
            return x + 0.0 * tf.reshape(out, tf.shape(x))

    return keras.Sequential([keras.Input((8, 8, 1)), Late(), keras.layers.Flatten(), keras.layers.Dense(10)])


def late_crash_model() -> Any:
    """Ends its process in its third window."""
    import os
    import signal

    return _late(lambda: os.kill(os.getpid(), signal.SIGKILL))


def late_hang_model() -> Any:
    """Hangs in its third window."""
    import time

    return _late(lambda: time.sleep(3600))


def __getattr__(name: str) -> Any:
    """Keras classes are made on first use, so that importing this module costs no Keras import."""
    import keras

    if name == "Log":

        class Log(keras.layers.Layer):  # type: ignore[misc]
            def call(self, x: Any) -> Any:
                return tf.math.log(-tf.abs(x) - 1.0)

        return Log
    if name == "Skipping":

        class Skipping(keras.optimizers.SGD):  # type: ignore[misc]
            def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
                if not hasattr(self, "_calls"):
                    with tf.init_scope():
                        self._calls = tf.Variable(0, dtype=tf.int64)
                count = self._calls.assign_add(1)
                tf.cond(
                    count % 3 == 0,
                    lambda: tf.no_op(),
                    lambda: tf.group(super(Skipping, self).apply(grads, trainable_variables) or tf.no_op()),
                )

        return Skipping
    if name == "LateDoubling":
        calls: dict[int, Any] = {}  # where the gate does not look for state: a fault does not say that it counts

        class LateDoubling(keras.optimizers.SGD):  # type: ignore[misc]
            def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
                if id(self) not in calls:
                    with tf.init_scope():
                        calls[id(self)] = tf.Variable(0, dtype=tf.int64)
                factor = tf.where(calls[id(self)].assign_add(1) > LATE, 2.0, 1.0)
                return super().apply([factor * gradient for gradient in grads], trainable_variables)

        return LateDoubling
    raise AttributeError(name)


def long_loss_model() -> Any:
    """A model whose gradient takes far longer than its update is sent: what several workers do at once overlaps."""
    import keras

    def long_loss(labels: Any, logits: Any) -> Any:
        of_examples = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        product = tf.ones((200, 200)) * (1 + 1e-6 * tf.reduce_mean(logits)) / 200
        for _ in range(30):
            product = product @ product
        return of_examples + 1e-3 * tf.reduce_mean(product)

    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
    model.compile("sgd", long_loss)
    return model


def amplifying_model() -> Any:
    """Twenty narrow layers, each normalised over a few examples: rounding alone makes another second update."""
    import keras

    layers = [keras.Input((8, 8, 1)), keras.layers.Flatten()]
    for _ in range(20):
        normal = keras.layers.BatchNormalization(center=False, scale=False)  # two variables fewer to train
        layers += [keras.layers.Dense(16, use_bias=False), normal, keras.layers.ReLU()]
    return keras.Sequential([*layers, keras.layers.Dense(10), keras.layers.Softmax()])
