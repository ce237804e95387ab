"""Images whose decoding takes as long as a function's name says, for `crossing.py`: `at_400` gives 400 a second.

The pace is kept by the clock: an example is given a stated time after the one before it, however long the rest of the
pipeline took, but none is given early to make up for a late one.
"""

import time
from collections.abc import Callable
from typing import Any

EXAMPLES = 192
_CLASSES = 10


def at(rate: int) -> Any:
    """A data set of `EXAMPLES` random images, which are given `rate` a second at most."""
    import numpy as np
    import tensorflow as tf

    draw = np.random.default_rng(1)
    images = draw.random((EXAMPLES, 28, 28, 1), dtype=np.float32)
    labels = draw.integers(_CLASSES, size=EXAMPLES)
    due = 0.0

    def decoded(image: Any) -> Any:
        nonlocal due
        now = time.monotonic()
        due = max(due, now - 1 / rate) + 1 / rate
        time.sleep(max(0.0, due - now))
        return image

    def slow(image: Any, label: Any) -> tuple[Any, Any]:
        given = tf.numpy_function(decoded, [image], tf.float32)
        given.set_shape(image.shape)
        return given, label

    return tf.data.Dataset.from_tensor_slices((images, labels)).map(slow)


def model() -> Any:
    """A network that takes some hundred of them a second on a processor's core."""
    import keras

    layers = [keras.layers.Conv2D(64, 3, activation="relu") for _ in range(3)]
    return keras.Sequential(
        [keras.Input((28, 28, 1)), *layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(_CLASSES)]
    )


def __getattr__(name: str) -> Callable[[], Any]:
    """The function `at_RATE`."""
    rate = name.removeprefix("at_")
    if rate == name or not rate.isdecimal():
        raise AttributeError(name)
    return lambda: at(int(rate))
