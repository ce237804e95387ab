"""The step of no strategy adds up its replicas' losses, and what is read of them is the global batch's mean."""

import contextlib
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.counting import updates_due
from harness.engines.tensorflow.executed import COLLECTIVES, inspect
from harness.engines.tensorflow.loops.custom import LossInShares, make_step
from tests.record.examples import cell

FEATURES, CLASSES = 8, 3
GENERATOR = np.random.default_rng(3)
X = GENERATOR.uniform(0.1, 1, (8, FEATURES)).astype(np.float32)
Y = GENERATOR.integers(CLASSES, size=8).astype(np.int32)
TWO = ("CPU:0", "CPU:1")

Build = Callable[[Any], Any]


def mirrored(op: str | None, devices: Sequence[str] = TWO) -> Build:
    """MirroredStrategy with a cross-device op of that name."""
    return lambda tf: tf.distribute.MirroredStrategy(
        list(devices), cross_device_ops=getattr(tf.distribute, op)() if op else None
    )


STRATEGIES: dict[str, tuple[int, Build]] = {
    "none": (1, lambda tf: tf.distribute.get_strategy()),
    "one_device": (1, lambda tf: tf.distribute.OneDeviceStrategy("CPU:0")),
    "mirrored, one replica": (1, mirrored("ReductionToOneDevice", TWO[:1])),
    "mirrored, one device's sums": (2, mirrored("ReductionToOneDevice")),
    "mirrored, hierarchical copy": (2, mirrored("HierarchicalCopyAllReduce")),
    "mirrored, ring": (2, mirrored(None)),
    "central_storage": (2, lambda tf: tf.distribute.experimental.CentralStorageStrategy(list(TWO), "CPU:0")),
}
TENSORS = 4
"""Gradients of the model: a kernel and a bias of each layer."""
RUN = [name for name in STRATEGIES if "ring" not in name]
"""Rings of several strategies of one process collide on the keys of their collectives."""


def training(tf: Any, name: str, xla: bool = False) -> Any:
    """A small model with a regulariser under a strategy."""
    import keras

    replicas, build = STRATEGIES[name]
    keras.utils.set_random_seed(1)
    strategy = build(tf)
    with strategy.scope():
        first = keras.layers.Dense(5, "tanh", kernel_regularizer="l2")
        model = keras.Sequential([keras.Input((FEATURES,)), first, keras.layers.Dense(CLASSES)])
        optimizer = keras.optimizers.SGD(0.05)
        optimizer.build(model.trainable_variables)
    cell = types.SimpleNamespace(
        global_batch_size=len(X), replicas_per_update=replicas, micro_batches=1, xla=xla, workers=1
    )
    return types.SimpleNamespace(
        strategy=strategy,
        model=model,
        optimizer=optimizer,
        cell=cell,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None),
        devices=types.SimpleNamespace(names=TWO[:replicas]),
        placement=contextlib.nullcontext,
        agree=lambda value: value,
    )


def parts(of: Any, sizes: Sequence[int]) -> list[Any]:
    """The batch in parts of these sizes, one a replica."""
    import keras

    ends = np.cumsum(sizes)

    def part(values: Any) -> Callable[[Any], Any]:
        def of_replica(context: Any) -> Any:
            i = context.replica_id_in_sync_group
            return keras.ops.convert_to_tensor(values[ends[i] - sizes[i] : ends[i]])

        return of_replica

    return [of.strategy.experimental_distribute_values_from_function(part(values)) for values in (X, Y)]


def halves(of: Any) -> list[int]:
    """Equal parts."""
    replicas = of.cell.replicas_per_update
    return [len(X) // replicas] * replicas


def ancestors(tensor: Any) -> Iterator[Any]:
    """The ops that a tensor is made of."""
    ahead, seen = [tensor.op], set()
    while ahead:
        operation = ahead.pop()
        if operation.name not in seen:
            seen.add(operation.name)
            yield operation
            ahead.extend(source.op for source in operation.inputs)


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_each_replicas_loss_is_made_on_its_own_device_and_of_nothing_from_another(
    tf: Any, name: str, xla: bool
) -> None:
    of = training(tf, name, xla)
    program = make_step(of).get_concrete_function(*parts(of, halves(of)))
    assert len(program.outputs) == of.cell.replicas_per_update
    for replica, share in enumerate(program.outputs):
        made_of = list(ancestors(share))
        assert not [operation.name for operation in made_of if operation.type in COLLECTIVES]
        on = {operation.device.rpartition("device:")[2] for operation in made_of if operation.device}
        # variables in central storage lie on the host
        assert on <= {TWO[replica], "CPU:0"} if name == "central_storage" else on <= {TWO[replica]}
        assert any(operation.type in ("MatMul", "StatefulPartitionedCall", "PartitionedCall") for operation in made_of)


@pytest.mark.parametrize(
    ("name", "reduced"),
    [
        ("none", {}),
        ("one_device", {}),
        ("mirrored, one replica", {}),
        ("mirrored, one device's sums", {"AddN": TENSORS}),
        ("mirrored, hierarchical copy", {"AddN": 1}),
        ("mirrored, ring", {"CollectiveReduceV2[ring]": 2}),
        ("central_storage", {"AddN": TENSORS}),
    ],
)
def test_a_step_reduces_its_gradients_and_nothing_besides(tf: Any, name: str, reduced: dict[str, int]) -> None:
    of = training(tf, name)
    program = make_step(of).get_concrete_function(*parts(of, halves(of)))
    assert inspect(program, cell(strategy=name.split(",")[0])).operations == reduced


def test_steps_whose_scaled_gradients_overflow_are_left_out_and_owe_no_update(tf: Any) -> None:
    import keras

    of = training(tf, "mirrored, one device's sums")
    with of.strategy.scope():
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05), initial_scale=2.0**127)
        optimizer.build(of.model.trainable_variables)
    of.optimizer, loss_of = optimizer, of.loss
    of.loss = lambda y, predicted: 100 * loss_of(y, predicted)
    step, batch, before = make_step(of), parts(of, halves(of)), of.model.trainable_variables[0].numpy()
    step(*batch)
    np.testing.assert_array_equal(of.model.trainable_variables[0].numpy(), before)
    for _ in range(11):
        step(*batch)
    taken = int(optimizer.inner_optimizer.iterations.numpy())
    assert 0 < taken < 12
    due, remarks = updates_due(optimizer, 12, 2)
    assert due == taken
    assert remarks["skipped"].startswith(f"{12 - taken} of 12 steps were left out by loss scaling")


@pytest.mark.parametrize("name", RUN)
def test_the_loss_that_is_read_is_the_mean_over_the_global_batch_and_what_the_model_adds(tf: Any, name: str) -> None:
    of = training(tf, name)
    expected = float(np.mean(of.loss(Y, of.model(X)))) + float(of.model.losses[0])
    assert float(LossInShares(of, make_step(of)(*parts(of, halves(of))))) == pytest.approx(expected, rel=1e-5)


def test_parts_of_unequal_size_count_by_their_examples(tf: Any) -> None:
    of = training(tf, "mirrored, one device's sums")
    expected = float(np.mean(of.loss(Y, of.model(X)))) + float(of.model.losses[0])
    shares = make_step(of)(*parts(of, [5, 3]))
    assert float(LossInShares(of, shares)) == pytest.approx(expected, rel=1e-5)
    first, second = (float(share) for share in of.strategy.experimental_local_results(shares))
    assert first + second == pytest.approx(expected, rel=1e-5)
    assert abs(first - second) > 0.1 * expected, "each replica has a part of it, and not the whole"


def test_of_several_workers_it_is_the_sum_of_what_all_of_them_have(tf: Any) -> None:
    of = training(tf, "mirrored, one device's sums")
    shares = make_step(of)(*parts(of, halves(of)))
    own = LossInShares(of, shares).own()
    of.cell.workers = 2
    of.agree = lambda value: (value + 0.75) / 2  # the mean of what the two have
    assert float(LossInShares(of, shares)) == pytest.approx(own + 0.75)
