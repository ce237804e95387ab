"""A multilayer perceptron: many weights for little computation, so communication weighs heavily."""

import itertools
import math
from typing import TYPE_CHECKING, Any

from harness.engines.jax.models._layers import dense, flat, layer
from harness.engines.jax.models.base import Model, Weights, stateless

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SHAPE, HIDDEN = (28, 28, 1), 512


def initial(generator: "np.random.Generator", classes: int) -> "dict[str, Array]":
    """Two hidden layers of 512; 669,706 weights for 10 classes."""
    sizes = (math.prod(SHAPE), HIDDEN, HIDDEN, classes)
    found: dict[str, Array] = {}
    for number, shape in enumerate(itertools.pairwise(sizes)):
        found |= layer(generator, f"dense_{number}", shape)
    return found


def logits(weights: Weights, x: Any) -> Any:
    """[batch, 28, 28, 1] to [batch, classes]."""
    from jax.nn import relu

    x = relu(dense(weights, "dense_0", flat(x)))
    return dense(weights, "dense_2", relu(dense(weights, "dense_1", x)))


MODEL = Model("mlp", "two dense layers of 512, 28×28×1, 0.67 M weights", SHAPE, initial, stateless(logits))
