"""Trainings whose updates are held against the reference."""

import contextlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.loops.custom import LossInShares, make_step
from harness.engines.tensorflow.reference.update import SingleDevice
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.training import build_model
from harness.engines.tensorflow.workloads import Workload, loss_of
from tests.record.examples import cell

CLASSES, BATCH = 3, 6
GENERATOR = np.random.default_rng(5)
BATCHES = [
    (GENERATOR.uniform(0.1, 1, (BATCH, 8)).astype(np.float32), GENERATOR.integers(CLASSES, size=BATCH).astype(np.int32))
    for _ in range(2)
]


def training(tf: Any, layers: Callable[[], list[Any]], n: int, of: Any = None, **options: Any) -> Any:
    """A model of `layers` and a last one on n devices, `of` a kind of keras.Sequential; `options` are the
    optimizer's."""
    import keras

    def build(*_: Any) -> Any:
        model = (of or keras.Sequential)([keras.Input((8,)), *layers(), keras.layers.Dense(CLASSES, dtype="float32")])
        kind = getattr(keras.optimizers, options.get("kind", "SGD"))
        beside = ("kind", "precision", "rate", "micro_batches")
        given = {name: value for name, value in options.items() if name not in beside}
        rate = options["rate"]() if "rate" in options else 0.05
        model.compile(kind(rate, **given), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    # one device's sums: several strategies of one process collide on the keys of collectives
    strategy = tf.distribute.MirroredStrategy(
        [f"CPU:{i}" for i in range(n)], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )
    cell = types.SimpleNamespace(
        global_batch_size=BATCH,
        replicas_per_update=n,
        micro_batches=options.get("micro_batches", 1),
        asynchronous=False,
        xla=False,
        optimizer="sgd",
        precision=options.get("precision", "float32"),
    )
    request = types.SimpleNamespace(seed=1)
    workload = Workload("", "", None, build)
    model, optimizer = build_model(workload, cell, CLASSES, 1, strategy)  # type: ignore[arg-type]
    return types.SimpleNamespace(
        strategy=strategy, model=model, optimizer=optimizer, cell=cell, loss=loss_of(model), workload=workload,
        request=request, classes=CLASSES, placement=contextlib.nullcontext, settled=[],
    )  # fmt: skip


def check(of: Any, tolerance: float = 1e-5, traced: bool = False) -> tuple[list[Any], list[Any]]:
    """Two updates both ways; every variable of every replica agrees after each. What the strategy has in the end, and
    the shares of the last update."""
    device, step = SingleDevice(of, traced), make_step(of)
    own = device.start([state.copies[0] for state in capture(of.model, of.optimizer)])
    shares: list[Any] = []
    for x, y in BATCHES:
        loss = LossInShares(of, step(*placed(of, x, y))).own()
        shares = device.shares((x, y), own)
        own = [share.statistics for share in shares]
        device.apply(shares)
        assert sum(float(share.loss) for share in shares) == pytest.approx(loss, rel=tolerance)
        for state, expected in zip(capture(of.model, of.optimizer), device.state(own), strict=True):
            for r, copy in enumerate(state.copies):
                wanted = expected[r] if state.kind == "statistic" else expected
                said = f"{state.name} of replica {r}"
                np.testing.assert_allclose(copy, wanted, rtol=20 * tolerance, atol=tolerance / 5, err_msg=said)
    return capture(of.model, of.optimizer), shares


def placed(of: Any, *arrays: Any) -> list[Any]:
    """Each replica's part of a global batch."""
    size = BATCH // of.cell.replicas_per_update

    def part(array: Any) -> Callable[[Any], Any]:
        def of_replica(context: Any) -> Any:
            i = context.replica_id_in_sync_group
            return array[i * size : (i + 1) * size]

        return of_replica

    return [of.strategy.experimental_distribute_values_from_function(part(array)) for array in arrays]


def of_one_process(of: Any) -> Any:
    """Such a training with all that a reference asks of it."""
    of.batches, of.unprovable, of.request.scratch = BATCHES, [], ""
    of.request.others_limit_s = 0.0
    of.devices = types.SimpleNamespace(reference="CPU:0", names=("CPU:0",))
    of.cell = cell(strategy="mirrored", replicas=2, batch_size=BATCH // 2, global_batch_size=BATCH, optimizer="sgd")
    return of
