"""The two-convolution MNIST network."""

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import nn

from harness.trial.same_work.architectures.mnist_cnn import LEFT

if TYPE_CHECKING:
    from harness.protocol.state import Array


def build(classes: int) -> Any:
    """[batch, 1, 28, 28] to [batch, classes]."""
    return nn.Sequential(
        OrderedDict(
            conv_0=nn.Conv2d(1, 32, 3),
            relu_0=nn.ReLU(),
            pool_0=nn.MaxPool2d(2),
            conv_1=nn.Conv2d(32, 64, 3),
            relu_1=nn.ReLU(),
            pool_1=nn.MaxPool2d(2),
            flat=nn.Flatten(),
            dense_0=nn.Linear(math.prod(LEFT), 64),
            relu_2=nn.ReLU(),
            dense_1=nn.Linear(64, classes),
        )
    )


def reordered(weights: "Mapping[str, Array]") -> "dict[str, Array]":
    """With the first dense layer's inputs in the order in which channels come first."""
    kernel = weights["dense_0/kernel"]
    first = kernel.reshape(*LEFT, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
    return {**weights, "dense_0/kernel": first}
