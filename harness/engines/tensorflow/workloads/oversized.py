"""A model that no card has room for: an acceptance run sees with it that running out of memory ends as that."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras

UNITS = 2**28
"""With 784 inputs the weights take 840 GB."""


def make_model() -> "keras.Model":
    """The model, compiled. Whoever builds it runs out of memory, which is what it is for."""
    import keras

    layers = [
        keras.Input((28, 28, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(UNITS, kernel_initializer="zeros"),
        keras.layers.Dense(10),
    ]
    model = keras.Sequential(layers)
    model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
