"""A small Transformer encoder over the patches of an image."""

import math
from typing import Any

from harness.engines._on_jax.model import Model, Weights, stateless
from harness.engines.jax.models._layers import LAYOUT, dense
from harness.trial.same_work.architectures.transformer import ARCHITECTURE, EPSILON, KEY, LAYERS, PATCH, TOKENS, WIDTH


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


MODEL = Model(ARCHITECTURE, stateless(logits))
