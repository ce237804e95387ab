"""ResNet-20 for 32×32 images with batch normalisation, as TensorFlow's `resnet20` is (He et al. 2015,
https://arxiv.org/abs/1512.03385, section 4.2, shortcuts of option A)."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.trial.same_work.architectures._layers import layer
from harness.trial.same_work.architectures.base import Architecture

if TYPE_CHECKING:
    import numpy as np

    from harness.protocol.state import Array

CHANNELS, BLOCKS, STAGES = 3, 3, (16, 32, 64)
MOMENTUM, EPSILON = 0.99, 1e-3
"""Of batch normalisation, Keras' defaults."""
TRUNCATED = 0.87962566103423978
"""The standard deviation of a standard normal number that is drawn again where it is beyond 2."""


def convolutions() -> Iterator[tuple[str, int, int, int]]:
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
    for name, given, filters, _ in convolutions():
        found[f"{name}/kernel"] = _he_normal(generator, (3, 3, given, filters))
        found[f"{name}/gamma"] = np.ones(filters, np.float32)
        found[f"{name}/beta"] = np.zeros(filters, np.float32)
    return found | layer(generator, "classes", (STAGES[-1], classes))


def statistics() -> "dict[str, Array]":
    """1,376 moving averages."""
    import numpy as np

    found: dict[str, Array] = {}
    for name, _, filters, _ in convolutions():
        found |= {f"{name}/mean": np.zeros(filters, np.float32), f"{name}/variance": np.ones(filters, np.float32)}
    return found


def _he_normal(generator: "np.random.Generator", shape: tuple[int, ...]) -> "Array":
    """Keras' `he_normal` of a kernel [h, w, in, out]."""
    import numpy as np

    drawn = generator.standard_normal(shape)
    while (beyond := np.abs(drawn) > 2).any():
        drawn[beyond] = generator.standard_normal(int(beyond.sum()))
    return (drawn * math.sqrt(2 / math.prod(shape[:3])) / TRUNCATED).astype(np.float32)


ARCHITECTURE = Architecture(
    "resnet20",
    "ResNet-20 with batch normalisation, 32×32×3, 0.27 M weights",
    (32, 32, CHANNELS),
    initial,
    statistics,
)
