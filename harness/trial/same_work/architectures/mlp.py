"""A multilayer perceptron: many weights for little computation, so communication weighs heavily."""

import itertools
import math
from typing import TYPE_CHECKING

from harness.trial.same_work.architectures._layers import layer
from harness.trial.same_work.architectures.base import Architecture

if TYPE_CHECKING:
    import numpy as np

    from harness.protocol.state import Array

SHAPE, HIDDEN = (28, 28, 1), 512


def initial(generator: "np.random.Generator", classes: int) -> "dict[str, Array]":
    """Two hidden layers of 512; 669,706 weights for 10 classes."""
    sizes = (math.prod(SHAPE), HIDDEN, HIDDEN, classes)
    found: dict[str, Array] = {}
    for number, shape in enumerate(itertools.pairwise(sizes)):
        found |= layer(generator, f"dense_{number}", shape)
    return found


ARCHITECTURE = Architecture("mlp", "two dense layers of 512, 28×28×1, 0.67 M weights", SHAPE, initial)
