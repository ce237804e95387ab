"""Trainings by fit."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.devices import Devices
from harness.engines.tensorflow.training import Training
from harness.trial.examples import random_batch
from tests.record.examples import cell

SHAPE, CLASSES, BATCH = (4,), 10, 8
BATCHES = [random_batch(SHAPE, CLASSES, BATCH, seed) for seed in (1, 2)]


class Paced:
    """Windows of so many steps; keeps the losses, and calls `between` before each window but the first."""

    def __init__(self, windows: list[int], between: Any = lambda: None) -> None:
        self.windows, self.between = [*windows, 0], between
        self.begun, self.losses = 0, list[float]()

    def begin(self) -> int:
        if self.begun:
            self.between()
        self.begun += 1
        return self.windows[self.begun - 1]

    def end(self, loss: Any) -> None:
        self.losses.append(float(loss))


def training(tf: Any, replicas: int, tmp_path: Path, xla: bool = False) -> Training:
    """A small model on synthetic data, under no strategy or on two devices."""
    import keras

    keras.utils.set_random_seed(1)
    names = tuple(f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(replicas))
    op = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(list(names), op) if replicas > 1 else tf.distribute.get_strategy()
    only = cell(
        strategy="mirrored" if replicas > 1 else "none", replicas=replicas, batch_size=BATCH // replicas,
        global_batch_size=BATCH, loop="fit", data="synthetic", xla=xla,
    )  # fmt: skip
    with strategy.scope():
        model = keras.Sequential([keras.Input(SHAPE), keras.layers.Dense(CLASSES)])
        optimizer = keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)
    request: Any = SimpleNamespace(training=only, member=None, plant=None, data_dir=str(tmp_path), seed=1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    workload: Any = None
    source = load_source("synthetic")
    return Training(
        request, Devices(names, replicas, False), strategy, workload, model, optimizer, loss, source, SHAPE, CLASSES,
        BATCHES,
    )  # fmt: skip


def ops(program: Any) -> set[str]:
    """The kinds of ops of a traced program and of all functions that it calls."""
    definition = program.graph.as_graph_def()
    functions = [function.node_def for function in definition.library.function]
    return {node.op for nodes in (definition.node, *functions) for node in nodes}
