"""Each worker's own forward and backward: in rounds that all begin together, as many passes on every worker."""

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.loops.custom import make_gradients, make_pass
from harness.engines.tensorflow.plants import planted
from harness.trial.alone import ROUND_S, ROUNDS, times_alone


class Worker:
    """A worker whose passes take so long, the first one more; the mean over all workers is given."""

    def __init__(self, pass_s: float, mean_s: float) -> None:
        self.pass_s, self.mean_s = pass_s, mean_s
        self.now = 0.0
        self.passes = 0
        self.meetings: list[int] = []
        """Passes made before each time that the workers met."""

    def run(self) -> None:
        self.now += self.pass_s if self.passes else 100 * self.pass_s
        self.passes += 1

    def agree(self, _: float) -> float:
        self.meetings.append(self.passes)
        return self.mean_s

    def times(self) -> list[float]:
        clock: Callable[[], float] = lambda: self.now  # noqa: E731
        return times_alone(self.run, self.agree, clock)


def test_a_value_a_round_is_the_seconds_of_a_pass_and_the_first_one_is_in_none() -> None:
    assert Worker(0.01, 0.01).times() == pytest.approx([0.01] * ROUNDS)


def test_fast_and_slow_workers_make_as_many_passes_and_meet_as_often() -> None:
    fast, slow = Worker(0.01, 0.015), Worker(0.02, 0.015)
    assert slow.times() == pytest.approx([2 * seconds for seconds in fast.times()])
    assert fast.meetings == slow.meetings
    assert len(fast.meetings) == 1 + ROUNDS


def test_a_round_has_one_pass_where_that_is_long_and_many_where_it_is_short() -> None:
    long, short = Worker(3.0, 3.0), Worker(ROUND_S / 100, ROUND_S / 100)
    long.times(), short.times()
    assert long.passes == 2 + ROUNDS
    assert short.passes == pytest.approx(2 + 100 * ROUNDS, abs=ROUNDS)


def training(tf: Any, replicas: int) -> Any:
    """A small model with a regulariser on so many devices."""
    import keras

    names = [f"CPU:{i}" for i in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(names) if replicas > 1 else tf.distribute.get_strategy()
    with strategy.scope():
        layers = [keras.layers.Dense(16, "relu", kernel_regularizer="l2"), keras.layers.Dense(3)]
        model = keras.Sequential([keras.Input((8,)), *layers])
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.build(model.trainable_variables)
    cell = types.SimpleNamespace(global_batch_size=8, replicas_per_update=replicas, micro_batches=1, xla=False)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    return types.SimpleNamespace(strategy=strategy, model=model, optimizer=optimizer, cell=cell, loss=loss)


X, Y = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8), np.arange(8, dtype=np.int32) % 3


def passing(of: Any) -> Any:
    """The pass of `of`."""
    return make_pass(of, planted(None, []), make_gradients(of))


def test_a_pass_computes_the_gradient_of_every_layer_once_tensorflow_has_left_out_what_nobody_needs(tf: Any) -> None:
    from tensorflow.python.eager import context

    of = training(tf, 1)
    eager = context.context()
    eager.enable_graph_collection()
    try:
        passing(of)(tf.constant(X), tf.constant(Y))
        graphs = [found.post_optimization_graph for found in eager.export_run_metadata().function_graphs]
    finally:
        eager.disable_graph_collection()
    ran = max(graphs, key=lambda graph: len(graph.node))
    nodes = [*ran.node, *(node for function in ran.library.function for node in function.node_def)]
    products = [node for node in nodes if node.op in ("MatMul", "_FusedMatMul")]
    assert len(products) == 2 + 3  # forward, and backward to both kernels and to what lies between them


def test_a_pass_changes_no_weight_and_reduces_nothing(tf: Any) -> None:
    of = training(tf, 2)
    before = [variable.numpy() for variable in [*of.model.variables, *of.optimizer.variables]]
    run = passing(of)
    dataset = iter(of.strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors((X, Y)).repeat()))
    batch = next(dataset)
    run(*batch)
    for variable, value in zip([*of.model.variables, *of.optimizer.variables], before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    definition = run.get_concrete_function(*batch).graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    assert not [node.op for node in nodes if "Collective" in node.op or "Reduce" in node.op]
