"""A small Transformer encoder over the patches of an image, as TensorFlow's `transformer` is with its default sizes."""

from typing import TYPE_CHECKING

from harness.trial.same_work.architectures._layers import glorot, layer
from harness.trial.same_work.architectures.base import Architecture

if TYPE_CHECKING:
    import numpy as np

    from harness.protocol.state import Array

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


def _normalisation(name: str) -> "dict[str, Array]":
    import numpy as np

    return {f"{name}/gamma": np.ones(WIDTH, np.float32), f"{name}/beta": np.zeros(WIDTH, np.float32)}


ARCHITECTURE = Architecture(
    "transformer", "2-block Transformer encoder of width 64 over 4×4 patches, 28×28×1", (28, 28, 1), initial
)
