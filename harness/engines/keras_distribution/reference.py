"""What the reference computes with: a model of its own, built and called where no distribution is known."""

import contextlib
from collections.abc import Iterator
from typing import Any

from harness.engines._on_jax.model import Forward, Statistics, Weights
from harness.engines.keras_distribution.models import model_of
from harness.trial.same_work.batches import CLASSES
from harness.trial.same_work.state import StateOrder


@contextlib.contextmanager
def undistributed() -> Iterator[None]:
    """While entered, Keras knows no distribution."""
    from keras import distribution

    before = distribution.distribution()
    distribution.set_distribution(None)
    try:
        yield
    finally:
        distribution.set_distribution(before)


def forward_of(name: str, layout: StateOrder) -> Forward:
    """The forward pass of training as a function of weights and statistics."""
    with undistributed():
        model = model_of(name, CLASSES)

    def forward(weights: Weights, statistics: Statistics, x: Any) -> tuple[Any, Statistics]:
        trained, untrained = (
            [of[key] for key in keys] for of, keys in ((weights, layout.names), (statistics, layout.statistics))
        )
        with undistributed():
            logits, after = model.stateless_call(trained, untrained, x, training=True)
        return logits, dict(zip(layout.statistics, after, strict=True))

    return forward
