"""keras.distribution with something planted in its steps, each as a cross-device op, for `explain` to find.

`slow_input` makes each batch come late, and its instrument without an update adds no gradients up either; `slow_update`
lets an update compute for longer. `auto` is Keras as it is.
"""

from typing import Any

from harness.engines.keras_distribution.engine import KerasDistribution
from harness.engines.keras_distribution.trainer import KerasTrainer
from harness.protocol.engine import Trainer
from harness.protocol.messages import Request
from harness.record.explain import FORWARD_BACKWARD, NO_UPDATE
from harness.spec.catalogue import Catalogue
from tests.engines.ops import with_ops
from tests.engines.torch.planted import SLOW_INPUT, SLOW_UPDATE, late

ROUNDS = 20
"""Of a planted update: each reads and writes all weights of the perceptron, which takes longer than a step."""


class PlantedTrainer(KerasTrainer):
    def __init__(self, request: Request) -> None:
        self._plant = request.training.cross_device_op
        super().__init__(request)
        if self._plant == SLOW_INPUT:
            self._data.batches = late(self._data.batches)
        if self._plant == SLOW_UPDATE:
            optimizer = self._training.model.optimizer
            optimizer.stateless_apply = _lasting(optimizer.stateless_apply)

    def _without(self, name: str) -> Any:
        lacks_more = self._plant == SLOW_INPUT and name == NO_UPDATE
        return super()._without(FORWARD_BACKWARD if lacks_more else name)


def _lasting(apply: Any) -> Any:
    """The update, of gradients that were worked on for long and are the same."""
    from jax import lax
    from jax import numpy as jnp

    def turned(_: Any, values: Any) -> Any:
        return [jnp.where(jnp.sin(jnp.exp(value)) < 2, value, -value) for value in values]

    return lambda own, gradients, trained: apply(own, lax.fori_loop(0, ROUNDS, turned, list(gradients)), trained)


class PlantedKeras(KerasDistribution):
    """keras.distribution and what is planted in it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), (SLOW_INPUT, SLOW_UPDATE))

    def trainer(self, request: Request) -> Trainer:
        return PlantedTrainer(request)
