"""A multilayer perceptron: many weights for little computation, so communication weighs heavily."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

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


def cut(model: "keras.Model") -> Mapping[str, int]:
    """The first layer by its outputs, the second by its inputs, so that one sum joins both (Megatron-LM, 2019)."""
    first, second = model.layers[-3:-1]
    return {first.kernel.path: 1, first.bias.path: 0, second.kernel.path: 0}
