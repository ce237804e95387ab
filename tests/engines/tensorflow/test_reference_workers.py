"""The reference of one of several workers."""

import types
from collections.abc import Callable
from typing import Any

import pytest

from harness.engines.tensorflow.reference.others import must_not_need_others
from harness.engines.tensorflow.server_state import ShardedVariable
from harness.engines.tensorflow.state import capture
from harness.errors import Unprovable
from tests.engines.tensorflow.referenced import BATCHES, training


def of_two_workers(tf: Any, layer: Callable[[], Any]) -> tuple[Any, Any]:
    """What one of two workers with a replica each has of such a training, and its state."""
    of = training(tf, lambda: [layer()], 2)
    of.cell.workers, of.cell.replicas, of.cell.asynchronous = 2, 1, False
    of.late_batches, of.devices = BATCHES, types.SimpleNamespace(reference="CPU:0", names=())
    return of, capture(of.model, of.optimizer)


def test_statistics_of_another_worker_that_its_share_is_computed_with_leave_a_late_update_unproved(tf: Any) -> None:
    import keras

    of, state = of_two_workers(tf, lambda: keras.layers.BatchNormalization(renorm=True))
    with pytest.raises(Unprovable, match="what another worker's replica computes depends on its own untrained state"):
        must_not_need_others(of, state)
    of.cell.workers, of.cell.replicas = 1, 2  # whose statistics this process has
    must_not_need_others(of, state)


def test_of_updates_that_wait_for_nobody_nothing_of_other_workers_is_asked(tf: Any) -> None:
    import keras

    of, state = of_two_workers(tf, lambda: keras.layers.BatchNormalization(renorm=True))
    of.cell.asynchronous = True
    on_servers = [ShardedVariable("moving_mean", ())]
    of.model = types.SimpleNamespace(non_trainable_variables=on_servers)
    must_not_need_others(of, state)


def test_statistics_of_another_worker_that_are_only_kept_are_no_obstacle(tf: Any) -> None:
    import keras

    for layer in (keras.layers.BatchNormalization, lambda: keras.layers.Dropout(0.5)):
        must_not_need_others(*of_two_workers(tf, layer))


def test_a_frozen_weight_is_no_statistic_of_another_worker_and_what_is_none_beside_it_still_is(tf: Any) -> None:
    import keras

    class Followed(keras.layers.Dense):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            super().build(shape)
            self.mean = self.add_weight((4,), trainable=False, initializer="zeros")

        def call(self, x: Any) -> Any:
            y = super().call(x)
            self.mean.assign(0.5 * self.mean + tf.reduce_mean(y, axis=0))
            return y - self.mean

    must_not_need_others(*of_two_workers(tf, lambda: keras.layers.Dense(4, trainable=False)))
    with pytest.raises(Unprovable, match="depends on its own untrained state"):
        must_not_need_others(*of_two_workers(tf, lambda: Followed(4, trainable=False)))
