"""Models and data of a user's own that say little of their sizes, types or losses."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

ROWS, TOKENS, LABELS = 128, 40, 6
GENERATOR = np.random.default_rng(5)
NUMBERS = GENERATOR.standard_normal((ROWS, 8)).astype(np.float32)
PRICES = GENERATOR.integers(100_000, 300_000, ROWS)
made_of = tf.data.Dataset.from_tensor_slices


def model_of_any_length() -> keras.Model:
    """A class of as many tokens as there are."""
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(256, 8)(tokens))
    return keras.Model(tokens, keras.layers.Dense(10)(hidden))


def tokens() -> Any:
    return made_of((GENERATOR.integers(50, size=(ROWS, TOKENS)).astype(np.int32), np.arange(ROWS, dtype=np.int32) % 3))


def ragged() -> Any:
    return made_of((tf.ragged.constant([[1], [2, 3]] * (ROWS // 2)), np.arange(ROWS, dtype=np.int32) % 3))


def model_of_any_size() -> keras.Model:
    """A class of an image of any size."""
    layers = [keras.layers.Conv2D(4, 3), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)]
    return keras.Sequential([keras.Input((None, None, 3)), *layers])


def model_of_pixels() -> keras.Model:
    """It scales whole numbers itself."""
    layers = [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(10)]
    return keras.Sequential([keras.Input((8, 8, 1), dtype="uint8"), *layers])


def model_of_small_pixels() -> keras.Model:
    return keras.Sequential([keras.Input((8, 8, 1), dtype="int8"), keras.layers.Flatten(), keras.layers.Dense(10)])


def model_of_a_product() -> keras.Model:
    """A number without an axis."""
    x = keras.Input((8,))
    made = keras.ops.sum(keras.layers.Dense(4)(x) * keras.layers.Dense(4)(x), axis=-1)
    return compiled(keras.Model(x, made), "mse")


def numbers() -> Any:
    return made_of((NUMBERS, NUMBERS[:, 0] * NUMBERS[:, 1]))


def model_of_labels() -> keras.Model:
    """Several of them may be an example's."""
    layers = [keras.Input((8,)), keras.layers.Dense(LABELS, activation="sigmoid")]
    return compiled(keras.Sequential(layers), ["binary_crossentropy"])


def several_labels() -> Any:
    return made_of((NUMBERS, GENERATOR.integers(2, size=(ROWS, LABELS))))


def model_of_prices() -> keras.Model:
    x = keras.Input((8,))
    return compiled(keras.Model(x, keras.layers.Dense(1, name="price")(x)), {"price": "log_cosh"})


def prices() -> Any:
    """Whole numbers that are no classes."""
    return made_of((NUMBERS, PRICES))


def model_of_two() -> keras.Model:
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])


def balanced(batch_size: int, shard: tuple[int, int]) -> Any:
    """Batches of which half is of each class."""
    index, count = shard
    of_each = [made_of((NUMBERS[k::2], np.full(ROWS // 2, k, np.int32))).shard(count, index) for k in (0, 1)]
    halves = [one.batch(batch_size // 2, drop_remainder=True) for one in of_each]
    return tf.data.Dataset.zip(*halves).map(
        lambda *of: tuple(tf.concat(parts, axis=0) for parts in zip(*of, strict=True))
    )


def compiled(model: keras.Model, loss: Any) -> keras.Model:
    model.compile(keras.optimizers.SGD(0.05), loss=loss)
    return model
