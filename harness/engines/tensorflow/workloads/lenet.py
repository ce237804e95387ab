"""LeNet as tf_cnn_benchmarks has it: two 5×5 convolutions of 32 and 64, each pooled, and a dense layer of 512."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.workloads.base import Workload

if TYPE_CHECKING:
    import keras


def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
    """1,663,370 weights for (28, 28, 1) and 10 classes, as McMahan et al. 2017 count them
    (https://arxiv.org/abs/1602.05629)."""
    import keras

    return keras.Sequential(
        [
            keras.Input(input_shape),
            keras.layers.Conv2D(32, 5, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 5, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(classes, dtype="float32"),
        ],
        name="lenet",
    )


WORKLOAD = Workload(
    name="lenet",
    summary="two 5×5 convolutions and a dense layer of 512, 28×28×1, 1.7 M weights: tf_cnn_benchmarks' LeNet",
    input_shape=(28, 28, 1),
    build=build,
)
