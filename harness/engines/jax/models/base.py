"""What a model is: weights by name, and a function of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Initial = Callable[[np.random.Generator, int], dict[str, Array]]

Weights = Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    """`initial(generator, classes)` draws the weights, float32 and by name, in the order and the layout of Keras'
    variables. `logits(weights, x)` maps [batch, *input_shape] to [batch, classes]."""

    name: str
    summary: str
    input_shape: tuple[int, ...]
    initial: "Initial"
    logits: Callable[[Weights, Any], Any]
