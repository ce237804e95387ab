"""A multilayer perceptron: many weights for little computation, so communication weighs heavily."""

from typing import TYPE_CHECKING

from harness.trial.workloads.base import Workload

if TYPE_CHECKING:
    import keras


def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
    """Two hidden layers of 512; 669,706 weights for (28, 28, 1) and 10 classes."""
    import keras

    return keras.Sequential(
        [
            keras.Input(input_shape),
            keras.layers.Flatten(),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(classes, dtype="float32"),
        ],
        name="mlp",
    )


WORKLOAD = Workload(
    name="mlp",
    summary="two dense layers of 512, 28×28×1, 0.67 M weights: much to reduce for little to compute",
    input_shape=(28, 28, 1),
    build=build,
)
