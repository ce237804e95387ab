"""A multilayer perceptron."""

import math
from collections import OrderedDict
from typing import Any

from torch import nn

from harness.trial.same_work.architectures.mlp import HIDDEN, SHAPE


def build(classes: int) -> Any:
    """[batch, 1, 28, 28] to [batch, classes]."""
    return nn.Sequential(
        OrderedDict(
            flat=nn.Flatten(),
            dense_0=nn.Linear(math.prod(SHAPE), HIDDEN),
            relu_0=nn.ReLU(),
            dense_1=nn.Linear(HIDDEN, HIDDEN),
            relu_1=nn.ReLU(),
            dense_2=nn.Linear(HIDDEN, classes),
        )
    )
