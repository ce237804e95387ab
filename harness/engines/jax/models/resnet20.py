"""ResNet-20 for 32×32 images with batch normalisation, as TensorFlow's `resnet20` is (He et al. 2015,
https://arxiv.org/abs/1512.03385, section 4.2, shortcuts of option A)."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.engines.jax.models._layers import LAYOUT, dense, layer
from harness.engines.jax.models.base import Model, Statistics, Weights

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

CHANNELS, BLOCKS, STAGES = 3, 3, (16, 32, 64)
MOMENTUM, EPSILON = 0.99, 1e-3
"""Of batch normalisation, Keras' defaults."""
TRUNCATED = 0.87962566103423978
"""The standard deviation of a standard normal number that is drawn again where it is beyond 2."""


def _convolutions() -> Iterator[tuple[str, int, int, int]]:
    """(name, channels in, channels out, stride) of each convolution, in the order in which they run."""
    yield "stem", CHANNELS, STAGES[0], 1
    before = STAGES[0]
    for stage, filters in enumerate(STAGES):
        for block in range(BLOCKS):
            stride = 2 if stage > 0 and block == 0 else 1
            yield f"stage_{stage}/block_{block}/first", before, filters, stride
            yield f"stage_{stage}/block_{block}/second", filters, filters, 1
            before = filters


def initial(generator: "np.random.Generator", classes: int) -> "dict[str, Array]":
    """269,722 weights for 10 classes."""
    import numpy as np

    found: dict[str, Array] = {}
    for name, given, filters, _ in _convolutions():
        found[f"{name}/kernel"] = _he_normal(generator, (3, 3, given, filters))
        found[f"{name}/gamma"] = np.ones(filters, np.float32)
        found[f"{name}/beta"] = np.zeros(filters, np.float32)
    return found | layer(generator, "classes", (STAGES[-1], classes))


def statistics() -> "dict[str, Array]":
    """1,376 moving averages."""
    import numpy as np

    found: dict[str, Array] = {}
    for name, _, filters, _ in _convolutions():
        found |= {f"{name}/mean": np.zeros(filters, np.float32), f"{name}/variance": np.ones(filters, np.float32)}
    return found


def forward(weights: Weights, before: Statistics, x: Any) -> tuple[Any, Statistics]:
    """[batch, 32, 32, 3] to [batch, classes], normalised by the means of this batch."""
    from jax.nn import relu

    after: Statistics = {}
    strides = {name: stride for name, _, _, stride in _convolutions()}

    def normalised(name: str, x: Any) -> Any:
        y, moved = _normalised(weights, before, name, _convolution(weights, name, x, strides[name]))
        after.update(moved)
        return y

    x = relu(normalised("stem", x))
    for name in [name.removesuffix("/first") for name in strides if name.endswith("/first")]:
        y = normalised(f"{name}/second", relu(normalised(f"{name}/first", x)))
        x = relu(_shortcut(x, y.shape[-1], strides[f"{name}/first"]) + y)
    return dense(weights, "classes", x.mean(axis=(1, 2))), after


def _he_normal(generator: "np.random.Generator", shape: tuple[int, ...]) -> "Array":
    """Keras' `he_normal` of a kernel [h, w, in, out]."""
    import numpy as np

    drawn = generator.standard_normal(shape)
    while (beyond := np.abs(drawn) > 2).any():
        drawn[beyond] = generator.standard_normal(int(beyond.sum()))
    return (drawn * math.sqrt(2 / math.prod(shape[:3])) / TRUNCATED).astype(np.float32)


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


MODEL = Model(
    "resnet20",
    "ResNet-20 with batch normalisation, 32×32×3, 0.27 M weights",
    (32, 32, CHANNELS),
    initial,
    forward,
    statistics,
)
