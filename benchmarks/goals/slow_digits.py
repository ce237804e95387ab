"""Images whose decoding takes as long as a parameter says, for `crossing.py` and `input_axes.py`.

`at(rate=400)` gives 400 a second. The pace is kept by the clock: an example is given a stated time after the one before
it, however long the rest of the pipeline took, but none is given early to make up for a late one. `gulps(rate=400)`
gives `GULP` at once, then none for as long as so many last at 400 a second, however slowly they were taken.
`paced(rate=400)` is a network that takes 400 a second, by the same clock.
"""

import time
from typing import Any

import numpy as np

EXAMPLES = 192
GULP = 256
_CLASSES = 10


def at(rate: int, at_once: int = 1) -> Any:
    """A data set of `EXAMPLES` random images, which are given `rate` a second at most, so many at once."""
    import tensorflow as tf

    draw = np.random.default_rng(1)
    images = draw.random((EXAMPLES, 28, 28, 1), dtype=np.float32)
    labels = draw.integers(_CLASSES, size=EXAMPLES)
    due, given, pause = 0.0, 0, at_once / rate

    def decoded(image: Any) -> Any:
        nonlocal due, given
        given += 1
        if given % at_once == 0:
            now = time.monotonic()
            due = (max(due, now - pause) if at_once == 1 else now) + pause
            time.sleep(max(0.0, due - now))
        return image

    def slow(image: Any, label: Any) -> tuple[Any, Any]:
        made = tf.numpy_function(decoded, [image], tf.float32)
        made.set_shape(image.shape)
        return made, label

    return tf.data.Dataset.from_tensor_slices((images, labels)).map(slow)


def gulps(rate: int) -> Any:
    """The same, `GULP` at once."""
    return at(rate, GULP)


def model() -> Any:
    """A network that takes some hundred of them a second on a processor's core."""
    import keras

    layers = [keras.layers.Conv2D(64, 3, activation="relu") for _ in range(3)]
    return keras.Sequential(
        [keras.Input((28, 28, 1)), *layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(_CLASSES)]
    )


def paced(rate: int) -> Any:
    """A small network that takes `rate` of them a second at most, as an accelerator would beside idle cores.

    Its forward pass lasts as long as a batch takes at that rate; the time since the last one counts if it is little.
    """
    import keras
    import tensorflow as tf

    due = 0.0

    def waits(count: Any) -> Any:
        nonlocal due
        pause, now = int(count) / rate, time.monotonic()
        due = (due if now - due < pause / 4 else now) + pause
        time.sleep(max(0.0, due - now))
        return np.float32(0)

    class Pace(keras.layers.Layer):  # type: ignore[misc]  # keras has no types
        def call(self, images: Any) -> Any:
            waited = tf.numpy_function(waits, [tf.shape(images)[0]], tf.float32)
            return images + tf.cast(tf.reshape(tf.stop_gradient(waited), ()), images.dtype)

    return keras.Sequential([keras.Input((28, 28, 1)), Pace(), keras.layers.Flatten(), keras.layers.Dense(_CLASSES)])
