"""What the models are made of: the layers of Keras with its defaults, channels last, and how their weights begin."""

import math
from typing import TYPE_CHECKING, Any

from harness.engines.jax.models.base import Weights

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

LAYOUT = ("NHWC", "HWIO", "NHWC")


def glorot(generator: "np.random.Generator", shape: tuple[int, ...]) -> "Array":
    """Keras' `glorot_uniform` of a kernel [..., in, out]."""
    import numpy as np

    field = math.prod(shape[:-2])
    limit = math.sqrt(6 / (field * (shape[-2] + shape[-1])))
    return generator.uniform(-limit, limit, shape).astype(np.float32)


def layer(generator: "np.random.Generator", name: str, shape: tuple[int, ...]) -> "dict[str, Array]":
    """Kernel and bias of a dense layer or a convolution called `name`."""
    import numpy as np

    return {f"{name}/kernel": glorot(generator, shape), f"{name}/bias": np.zeros(shape[-1], np.float32)}


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
