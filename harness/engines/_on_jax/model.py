"""What a model is, an architecture and a function of its weights, and what training it needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.trial.same_work.architectures import Architecture
from harness.trial.same_work.optimizers import Optimizer
from harness.trial.same_work.state import Pass

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


@dataclass(frozen=True)
class TrainedModel:
    """What is trained: `global_batch` is G, of which each device has an equal part."""

    model: Model
    optimizer: Optimizer
    devices: list[Any]
    """Of all processes."""
    global_batch: int

    def share_loss(self, weights: Weights, statistics: Statistics, x: Any, y: Any, counts: Any) -> Any:
        """(the part that the examples (x [b, ...], y [b]) have in the mean cross-entropy over the global batch, the
        statistics afterwards). An example counts by `counts` [b]."""
        from jax import nn
        from jax import numpy as jnp

        logits, statistics = self.model.forward(weights, statistics, x)
        told = jnp.take_along_axis(nn.log_softmax(logits), y[:, jnp.newaxis], axis=1)
        return -jnp.sum(told[:, 0] * counts) / self.global_batch, statistics

    def passed(self, weights: Weights, statistics: Statistics, x: Any, y: Any, counts: Any = 1.0) -> Pass:
        """Forward and backward of `share_loss`."""
        import jax

        told, gradients = jax.value_and_grad(self.share_loss, has_aux=True)(weights, statistics, x, y, counts)
        return Pass(told[0], gradients, told[1])
