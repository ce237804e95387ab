"""The two-convolution MNIST network that the `tf.distribute` tutorials train."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras


def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
    """Conv 32, pool, Conv 64, pool, Dense 64, Dense `classes`; 121,930 weights for (28, 28, 1) and 10 classes.

    The body is that of https://www.tensorflow.org/tutorials/distribute/custom_training with unpadded
    convolutions.
    """
    import keras

    return keras.Sequential(
        [
            keras.Input(input_shape),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(classes, dtype="float32"),
        ],
        name="mnist_cnn",
    )


def cut(model: "keras.Model") -> Mapping[str, int]:
    """The dense layers, which hold most weights; the convolutions run whole on every device of a replica.

    That is the division of A. Krizhevsky, *One weird trick for parallelizing convolutional neural networks* (2014).
    """
    first, second = model.layers[-2:]
    return {first.kernel.path: 1, first.bias.path: 0, second.kernel.path: 0}
