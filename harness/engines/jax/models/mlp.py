"""A multilayer perceptron."""

from typing import Any

from harness.engines._on_jax.model import Model, Weights, stateless
from harness.engines.jax.models._layers import dense, flat
from harness.trial.same_work.architectures.mlp import ARCHITECTURE


def logits(weights: Weights, x: Any) -> Any:
    """[batch, 28, 28, 1] to [batch, classes]."""
    from jax.nn import relu

    x = relu(dense(weights, "dense_0", flat(x)))
    return dense(weights, "dense_2", relu(dense(weights, "dense_1", x)))


MODEL = Model(ARCHITECTURE, stateless(logits))
