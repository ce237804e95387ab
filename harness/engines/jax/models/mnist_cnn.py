"""The two-convolution MNIST network that TensorFlow's `mnist_cnn` is."""

from typing import TYPE_CHECKING, Any

from harness.engines.jax.models._layers import convolution, dense, flat, layer, pooled
from harness.engines.jax.models.base import Model, Weights, stateless

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

PIXELS = 5 * 5 * 64
"""What is left of 28×28 after two unpadded convolutions of 3×3, each with a pooling."""


def initial(generator: "np.random.Generator", classes: int) -> "dict[str, Array]":
    """Conv 32, pool, Conv 64, pool, Dense 64, Dense `classes`; 121,930 weights for 10 classes."""
    return {
        **layer(generator, "conv_0", (3, 3, 1, 32)),
        **layer(generator, "conv_1", (3, 3, 32, 64)),
        **layer(generator, "dense_0", (PIXELS, 64)),
        **layer(generator, "dense_1", (64, classes)),
    }


def logits(weights: Weights, x: Any) -> Any:
    """[batch, 28, 28, 1] to [batch, classes]."""
    from jax.nn import relu

    for name in ("conv_0", "conv_1"):
        x = pooled(relu(convolution(weights, name, x)))
    return dense(weights, "dense_1", relu(dense(weights, "dense_0", flat(x))))


MODEL = Model("mnist_cnn", "two convolutions, 28×28×1, 0.12 M weights", (28, 28, 1), initial, stateless(logits))
