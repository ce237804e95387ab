"""A small Transformer encoder over the patches of an image, as TensorFlow's `transformer` is with its default sizes."""

import math
from typing import TYPE_CHECKING, Any

from harness.engines.jax.models._layers import LAYOUT, dense, glorot, layer
from harness.engines.jax.models.base import Model, Weights, stateless

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

PATCH, TOKENS, WIDTH, HEADS, LAYERS = 4, 49, 64, 4, 2
HIDDEN, KEY = 2 * WIDTH, WIDTH // HEADS
EPSILON = 1e-3
"""Of a normalisation, Keras' default."""
POSITIONS = 0.02
"""The standard deviation that positions begin with."""


def initial(generator: "np.random.Generator", classes: int) -> "dict[str, Array]":
    """Two blocks of width 64 with 4 heads over 49 tokens; 71,946 weights for 10 classes."""
    import numpy as np

    found = layer(generator, "patches", (PATCH, PATCH, 1, WIDTH))
    found["positions"] = generator.normal(scale=POSITIONS, size=(TOKENS, WIDTH)).astype(np.float32)
    for block in range(LAYERS):
        found |= _normalisation(f"block_{block}/attention_norm")
        for name in ("query", "key", "value"):
            kernel = glorot(generator, (WIDTH, HEADS, KEY))
            found |= {
                f"block_{block}/{name}/kernel": kernel,
                f"block_{block}/{name}/bias": np.zeros((HEADS, KEY), np.float32),
            }
        found |= layer(generator, f"block_{block}/output", (HEADS, KEY, WIDTH))
        found |= _normalisation(f"block_{block}/perceptron_norm")
        found |= layer(generator, f"block_{block}/wide", (WIDTH, HIDDEN))
        found |= layer(generator, f"block_{block}/narrow", (HIDDEN, WIDTH))
    return found | _normalisation("norm") | layer(generator, "classes", (WIDTH, classes))


def logits(weights: Weights, x: Any) -> Any:
    """[batch, 28, 28, 1] cut into 49 tokens, then the blocks, [batch, classes]."""
    from jax import lax

    stride = (PATCH, PATCH)
    x = lax.conv_general_dilated(x, weights["patches/kernel"], stride, "VALID", dimension_numbers=LAYOUT)
    x = (x + weights["patches/bias"]).reshape(len(x), TOKENS, WIDTH) + weights["positions"]
    for block in range(LAYERS):
        x = x + _attention(weights, f"block_{block}", _normalised(weights, f"block_{block}/attention_norm", x))
        x = x + _perceptron(weights, f"block_{block}", _normalised(weights, f"block_{block}/perceptron_norm", x))
    return dense(weights, "classes", _normalised(weights, "norm", x).mean(axis=1))


def _normalisation(name: str) -> "dict[str, Array]":
    import numpy as np

    return {f"{name}/gamma": np.ones(WIDTH, np.float32), f"{name}/beta": np.zeros(WIDTH, np.float32)}


def _normalised(weights: Weights, name: str, x: Any) -> Any:
    """[..., width] to mean 0 and variance 1, then scaled and moved."""
    from jax import lax

    centred = x - x.mean(axis=-1, keepdims=True)
    scale = lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
    return centred * scale * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def _attention(weights: Weights, name: str, x: Any) -> Any:
    """Self-attention over all tokens, [batch, tokens, width] to the same."""
    from jax import nn
    from jax import numpy as jnp

    query, key, value = (
        jnp.einsum("btw,whk->bthk", x, weights[f"{name}/{part}/kernel"]) + weights[f"{name}/{part}/bias"]
        for part in ("query", "key", "value")
    )
    scores = nn.softmax(jnp.einsum("bthk,bshk->bhts", query / math.sqrt(KEY), key), axis=-1)
    attended = jnp.einsum("bhts,bshk->bthk", scores, value)
    return jnp.einsum("bthk,hkw->btw", attended, weights[f"{name}/output/kernel"]) + weights[f"{name}/output/bias"]


def _perceptron(weights: Weights, name: str, x: Any) -> Any:
    from jax import nn

    return dense(weights, f"{name}/narrow", nn.gelu(dense(weights, f"{name}/wide", x), approximate=False))


MODEL = Model(
    "transformer",
    "2-block Transformer encoder of width 64 over 4×4 patches, 28×28×1",
    (28, 28, 1),
    initial,
    stateless(logits),
)
