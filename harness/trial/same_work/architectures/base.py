"""What of a model is the same whatever engine computes it: the shape of its input, and its weights as they begin."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from harness.protocol.state import Array

    Initial = Callable[[np.random.Generator, int], dict[str, Array]]


@dataclass(frozen=True)
class Architecture:
    """`initial(generator, classes)` draws the weights, float32 and by name, in the order and the layout of Keras'
    variables; `statistics()` are what it keeps besides, as they begin."""

    name: str
    summary: str
    input_shape: tuple[int, ...]
    initial: "Initial"
    statistics: "Callable[[], dict[str, Array]]" = dict
