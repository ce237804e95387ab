"""How the weights of Keras' layers begin with its defaults, kernels with their outputs last."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from harness.protocol.state import Array


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
