"""What a model is: weights by name, and a function of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Initial = Callable[[np.random.Generator, int], dict[str, Array]]

Weights = Mapping[str, Any]
Statistics = dict[str, Any]
"""What a model keeps besides and does not train, by name: batch normalisation's moving averages."""
Forward = Callable[[Weights, Statistics, Any], tuple[Any, Statistics]]
"""(weights, statistics, x [batch, *input_shape]) -> (logits [batch, classes], statistics afterwards)."""


@dataclass(frozen=True)
class Model:
    """`initial(generator, classes)` draws the weights, float32 and by name, in the order and the layout of Keras'
    variables; `statistics()` are what it keeps besides, as they begin."""

    name: str
    summary: str
    input_shape: tuple[int, ...]
    initial: "Initial"
    forward: Forward
    statistics: "Callable[[], dict[str, Array]]" = dict


def stateless(logits: Callable[[Weights, Any], Any]) -> Forward:
    """`forward` of a model without statistics, whose logits are a function of weights and input."""

    def forward(weights: Weights, statistics: Statistics, x: Any) -> tuple[Any, Statistics]:
        return logits(weights, x), statistics

    return forward
