"""ResNet-20 with batch normalisation."""

from typing import Any

from harness.engines._on_jax.model import Model, Statistics, Weights
from harness.engines.jax.models._layers import LAYOUT, dense
from harness.trial.same_work.architectures.resnet20 import ARCHITECTURE, EPSILON, MOMENTUM, convolutions


def forward(weights: Weights, before: Statistics, x: Any) -> tuple[Any, Statistics]:
    """[batch, 32, 32, 3] to [batch, classes], normalised by the means of this batch."""
    from jax.nn import relu

    after: Statistics = {}
    strides = {name: stride for name, _, _, stride in convolutions()}

    def normalised(name: str, x: Any) -> Any:
        y, moved = _normalised(weights, before, name, _convolution(weights, name, x, strides[name]))
        after.update(moved)
        return y

    x = relu(normalised("stem", x))
    for name in [name.removesuffix("/first") for name in strides if name.endswith("/first")]:
        y = normalised(f"{name}/second", relu(normalised(f"{name}/first", x)))
        x = relu(_shortcut(x, y.shape[-1], strides[f"{name}/first"]) + y)
    return dense(weights, "classes", x.mean(axis=(1, 2))), after


def _convolution(weights: Weights, name: str, x: Any, stride: int) -> Any:
    from jax import lax

    kernel = weights[f"{name}/kernel"]
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def _normalised(weights: Weights, before: Statistics, name: str, x: Any) -> tuple[Any, Statistics]:
    """Mean 0 and variance 1 over the batch, scaled and moved; and the moving averages after it."""
    from jax import lax

    mean = x.mean(axis=(0, 1, 2))
    variance = ((x - mean) ** 2).mean(axis=(0, 1, 2))
    y = (x - mean) * lax.rsqrt(variance + EPSILON) * weights[f"{name}/gamma"] + weights[f"{name}/beta"]
    now = {"mean": mean, "variance": variance}
    return y, {
        f"{name}/{kind}": MOMENTUM * before[f"{name}/{kind}"] + (1 - MOMENTUM) * value for kind, value in now.items()
    }


def _shortcut(x: Any, filters: int, stride: int) -> Any:
    """Every second pixel where the block halves the image, and new channels of zeros on both sides."""
    from jax import numpy as jnp

    missing = filters - x.shape[-1]
    sides = (missing // 2, missing - missing // 2)
    return jnp.pad(x[:, ::stride, ::stride, :], ((0, 0), (0, 0), (0, 0), sides))


MODEL = Model(ARCHITECTURE, forward)
