"""The two-convolution MNIST network that TensorFlow's `mnist_cnn` is."""

import math
from typing import TYPE_CHECKING

from harness.trial.same_work.architectures._layers import layer
from harness.trial.same_work.architectures.base import Architecture

if TYPE_CHECKING:
    import numpy as np

    from harness.protocol.state import Array

SHAPE = (28, 28, 1)
LEFT = (5, 5, 64)
"""What is left of 28×28 after two unpadded convolutions of 3×3, each with a pooling: rows, columns, channels."""


def initial(generator: "np.random.Generator", classes: int) -> "dict[str, Array]":
    """Conv 32, pool, Conv 64, pool, Dense 64, Dense `classes`; 121,930 weights for 10 classes."""
    return {
        **layer(generator, "conv_0", (3, 3, 1, 32)),
        **layer(generator, "conv_1", (3, 3, 32, 64)),
        **layer(generator, "dense_0", (math.prod(LEFT), 64)),
        **layer(generator, "dense_1", (64, classes)),
    }


ARCHITECTURE = Architecture("mnist_cnn", "two convolutions, 28×28×1, 0.12 M weights", SHAPE, initial)
