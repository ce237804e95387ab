"""The reference under Horovod: a model of its own that knows no other process and no optimizer."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from harness.trial.same_work.optimizers import Optimizer
from harness.trial.same_work.reference import ShareByShare
from harness.trial.same_work.state import Pass, State, StateOrder

if TYPE_CHECKING:
    from harness.trial.same_work.reference import Batch


class KerasShares(ShareByShare):
    """See `ShareByShare`. Weights and statistics are handed to `model`; none of its own are read or written."""

    def __init__(self, model: Any, layout: StateOrder, optimizer: Optimizer, replicas: int, arithmetic: str) -> None:
        super().__init__(layout, optimizer, replicas, arithmetic)
        self._model = model

    def shares(self, state: State, batch: "Batch") -> list[Pass]:
        """Each in training mode: a replica normalises by its own share."""
        weights = [tf.constant(np.float32(value)) for value in state.weights.values()]
        found = []
        for own, share in self._of_each(state, batch):
            x, y = (tf.constant(values[share]) for values in batch)
            loss, gradients, after = self._passed(weights, [tf.constant(value) for value in own.values()], x, y)
            found.append(
                Pass(
                    float(loss) / self._replicas,
                    {n: g.numpy() / self._replicas for n, g in zip(state.weights, gradients, strict=True)},
                    {n: value.numpy() for n, value in zip(state.statistics, after, strict=True)},
                )
            )
        return found

    @functools.cached_property
    def _passed(self) -> Any:
        """Forward and backward of a share: (weights, statistics, x [b, ...], y [b]) -> (its mean loss, gradients,
        statistics afterwards)."""

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def passed(weights: list[Any], statistics: list[Any], x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(weights)
                logits, after = self._model.stateless_call(weights, statistics, x, training=True)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
            return loss, tape.gradient(loss, weights), after

        return passed
