"""What the models are made of: the layers of Keras with its defaults, channels last."""

import math
from typing import Any

from harness.engines._on_jax.model import Weights

LAYOUT = ("NHWC", "HWIO", "NHWC")


def dense(weights: Weights, name: str, x: Any) -> Any:
    """[batch, in] to [batch, out]."""
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def convolution(weights: Weights, name: str, x: Any) -> Any:
    """[batch, h, w, in] to [batch, h', w', out], unpadded and with a stride of 1."""
    from jax import lax

    kernel = weights[f"{name}/kernel"]
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=LAYOUT) + weights[f"{name}/bias"]


def pooled(x: Any) -> Any:
    """The largest of each 2×2 pixels: [batch, h, w, c] to [batch, h // 2, w // 2, c]."""
    from jax import lax

    size = (1, 2, 2, 1)
    return lax.reduce_window(x, -math.inf, lax.max, size, size, "VALID")


def flat(x: Any) -> Any:
    """[batch, ...] to [batch, features]."""
    return x.reshape(x.shape[0], -1)
