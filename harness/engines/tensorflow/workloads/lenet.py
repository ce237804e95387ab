"""LeNet as tf_cnn_benchmarks has it (`lenet5`): TensorFlow's first MNIST tutorial, and the network of McMahan et al.
2016, https://arxiv.org/abs/1602.05629, section 3."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.workloads.base import Workload

if TYPE_CHECKING:
    import keras


def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
    """Conv 32, pool, Conv 64, pool, Dense 512, Dense `classes`; 1,663,370 weights for (28, 28, 1) and 10 classes."""
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
    summary="LeNet of tf_cnn_benchmarks, 28×28×1, 1.66 M weights",
    input_shape=(28, 28, 1),
    build=build,
)
