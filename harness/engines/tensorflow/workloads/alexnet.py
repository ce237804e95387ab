"""AlexNet with one column (Krizhevsky 2014, https://arxiv.org/abs/1404.5997), without dropout."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.workloads.base import Workload

if TYPE_CHECKING:
    import keras


def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
    """61,100,840 weights for (224, 224, 3) and 1,000 classes, as torchvision counts them."""
    import keras

    def convolution(filters: int, size: int) -> "keras.layers.Layer":
        return keras.layers.Conv2D(filters, size, padding="same", activation="relu")

    return keras.Sequential(
        [
            keras.Input(input_shape),
            keras.layers.ZeroPadding2D(2),
            keras.layers.Conv2D(64, 11, strides=4, activation="relu"),
            keras.layers.MaxPooling2D(3, 2),
            convolution(192, 5),
            keras.layers.MaxPooling2D(3, 2),
            convolution(384, 3),
            convolution(256, 3),
            convolution(256, 3),
            keras.layers.MaxPooling2D(3, 2),
            keras.layers.Flatten(),
            keras.layers.Dense(4096, activation="relu"),
            keras.layers.Dense(4096, activation="relu"),
            keras.layers.Dense(classes, dtype="float32"),
        ],
        name="alexnet",
    )


WORKLOAD = Workload(
    name="alexnet",
    summary="five convolutions and two dense layers of 4,096, 224×224×3, 61 M weights: much to reduce",
    input_shape=(224, 224, 3),
    build=build,
)
