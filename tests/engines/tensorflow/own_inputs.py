"""Data of a user's own with a fault each, and a model that takes them: 64 rows of two numbers in two classes."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # imported where it is used: the tests read DECODED_S, and no process of tests is to have it for that
    import keras
    import tensorflow as tf

ROWS = 64
X, Y = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2), np.arange(ROWS, dtype=np.int32) % 2
DECODED_S = 0.002
"""What an example of `slow` takes to make."""
Rows = Iterator[tuple[Any, Any]]


def model() -> "keras.Model":
    import keras

    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])


def right() -> "tf.data.Dataset":
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((X, Y))


def uncounted() -> "tf.data.Dataset":
    """The same from a generator, of which nobody knows how many there are."""
    return _generated(lambda _: zip(X, Y, strict=True))


def drops() -> "tf.data.Dataset":
    """After the first pass one is missing."""
    return _generated(lambda number: zip(X[number > 0 :], Y[number > 0 :], strict=True))


def doubles() -> "tf.data.Dataset":
    """After the first pass one is there twice, and another is not."""
    return _generated(lambda number: ((X[row], Y[row]) for row in (int(number > 0), *range(1, ROWS))))


def random() -> "tf.data.Dataset":
    """Others in each pass."""
    return _generated(lambda number: zip(X + number, Y, strict=True))


def turned() -> "tf.data.Dataset":
    """In another order in each pass."""
    return _generated(lambda number: zip(np.roll(X, number, 0), np.roll(Y, number), strict=True))


def reshaped() -> "tf.data.Dataset":
    """In its tenth batch of four, of another shape than it says."""
    import tensorflow as tf

    def shaped(x: Any) -> Any:
        return np.zeros(3, np.float32) if x[0] == X[37][0] else x

    def told(x: Any, y: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(shaped, [x], tf.float32), None), y

    def claimed(x: Any, y: Any) -> Any:
        x.set_shape((2,))
        return x, y

    return right().map(told).map(claimed)


def raises() -> "tf.data.Dataset":
    """After its 40th row."""

    def rows(_: int) -> Rows:
        yield from zip(X[:40], Y[:40], strict=True)
        raise OSError("the table is gone")

    return _generated(rows)


def ends() -> "tf.data.Dataset":
    """After its fourth pass there are no more."""
    return _generated(lambda number: zip(X, Y, strict=True) if number < 4 else iter(()))


def hangs() -> "tf.data.Dataset":
    """At its 40th row."""

    def rows(_: int) -> Rows:
        yield from zip(X[:40], Y[:40], strict=True)
        time.sleep(3600)

    return _generated(rows)


def endless() -> "tf.data.Dataset":
    return right().repeat()


def batches(batch_size: int, shard: tuple[int, int]) -> "tf.data.Dataset":
    """Of a shard, in an order of its own in each pass."""
    index, count = shard
    own = right().shard(count, index).shuffle(ROWS, seed=1)
    return own.batch(batch_size, drop_remainder=True)


def slow() -> "tf.data.Dataset":
    """Each takes DECODED_S of a processor."""
    import tensorflow as tf

    def decoded(x: Any) -> Any:
        until = time.perf_counter() + DECODED_S
        while time.perf_counter() < until:
            pass
        return x

    def made(x: Any, y: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(decoded, [x], tf.float32), (2,)), y

    return right().map(made)


def _generated(rows: Callable[[int], Rows]) -> "tf.data.Dataset":
    """`rows` of each pass, by its number."""
    import tensorflow as tf

    spec = (tf.TensorSpec((2,), tf.float32), tf.TensorSpec((), tf.int32))
    passes = itertools.count()
    return tf.data.Dataset.from_generator(lambda: rows(next(passes)), output_signature=spec)
