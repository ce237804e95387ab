"""What a model is: an architecture, and a function of its weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.trial.same_work.architectures import Architecture

Weights = Mapping[str, Any]
Statistics = dict[str, Any]
"""What a model keeps besides and does not train, by name: batch normalisation's moving averages."""
Forward = Callable[[Weights, Statistics, Any], tuple[Any, Statistics]]
"""(weights, statistics, x [batch, *input_shape]) -> (logits [batch, classes], statistics afterwards)."""


@dataclass(frozen=True)
class Model:
    """An architecture with what computes it."""

    architecture: Architecture
    forward: Forward

    @property
    def name(self) -> str:
        """As a spec says it."""
        return self.architecture.name


def stateless(logits: Callable[[Weights, Any], Any]) -> Forward:
    """`forward` of a model without statistics, whose logits are a function of weights and input."""

    def forward(weights: Weights, statistics: Statistics, x: Any) -> tuple[Any, Statistics]:
        return logits(weights, x), statistics

    return forward
