"""The two-convolution MNIST network."""

from typing import Any

from harness.engines._on_jax.model import Model, Weights, stateless
from harness.engines.jax.models._layers import convolution, dense, flat, pooled
from harness.trial.same_work.architectures.mnist_cnn import ARCHITECTURE


def logits(weights: Weights, x: Any) -> Any:
    """[batch, 28, 28, 1] to [batch, classes]."""
    from jax.nn import relu

    for name in ("conv_0", "conv_1"):
        x = pooled(relu(convolution(weights, name, x)))
    return dense(weights, "dense_1", relu(dense(weights, "dense_0", flat(x))))


MODEL = Model(ARCHITECTURE, stateless(logits))
