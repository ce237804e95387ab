"""No strategy gets its batches as one device's strategy does: on the device, and made before the step asks for them."""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, Source
from harness.engines.tensorflow.data.pipeline import ahead_on_device
from harness.engines.tensorflow.devices import Devices
from harness.engines.tensorflow.loops.custom import CustomLoop
from harness.engines.tensorflow.loops.fit import FitLoop
from harness.engines.tensorflow.training import Training
from tests.record.examples import cell

HOST, DEVICE = (f"/job:localhost/replica:0/task:0/device:CPU:{number}" for number in (0, 1))
SAID = {
    ("none", 0): "Prefetch(2)",
    ("none", 1): "Prefetch(1)",
    ("none", 3): "Prefetch(3)",
    ("one_device", 0): "MultiDeviceIterator(1, host)",
    ("one_device", 1): "MultiDeviceIterator(1)",
    ("one_device", 3): "MultiDeviceIterator(3)",
}
"""The last stage of how batches are brought to the device."""
SHAPE, BATCH = (2, 2, 1), 4
FAR_TOO_LONG_S = 120.0


class Alike(Source):
    """Eight images that are all alike: in whatever order they come, they train the same."""

    name = "alike"
    summary = "for tests"

    def prepare(self, data_dir: Path) -> None:
        """Nothing to do."""

    def info(self, data_dir: Path) -> DataInfo:
        """Of one size."""
        return DataInfo(SHAPE, 3, 8)

    def examples(self, data_dir: Path) -> Any:
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices((np.full((8, *SHAPE), 3, np.float32), np.ones(8, np.int64)))


def strategies(tf: Any) -> dict[str, Any]:
    return {"none": tf.distribute.get_strategy(), "one_device": tf.distribute.OneDeviceStrategy(DEVICE)}


def training(tf: Any, name: str, folder: Path, device_prefetch: int = 1) -> Training:
    """A model that adds up its input, trained on the second device."""
    import keras

    strategy = strategies(tf)[name]
    keys = {"batch_size": BATCH, "global_batch_size": BATCH, "device_prefetch": device_prefetch}
    only = cell(strategy=name, replicas=1, loop="custom", **keys)
    with strategy.scope(), tf.device(DEVICE) if name == "none" else contextlib.nullcontext():
        model = keras.Sequential([keras.Input(SHAPE), keras.layers.Flatten(), keras.layers.Dense(3)])
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.build(model.trainable_variables)
    request: Any = SimpleNamespace(training=only, member=None, plant=None, data_dir=str(folder), seed=1, scratch="")
    gate = [(np.full((BATCH, *SHAPE), number, np.float32), np.arange(BATCH, dtype=np.int32) % 3) for number in (1, 2)]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    workload: Any = None
    return Training(
        request, Devices((DEVICE,), 1, False), strategy, workload, model, optimizer, loss, Alike(), SHAPE, 3, gate
    )


@pytest.mark.parametrize("name", ["none", "one_device"])
def test_batches_lie_on_the_device_in_their_order(tf: Any, name: str, tmp_path: Path) -> None:
    of = training(tf, name, tmp_path)
    batches = iter(of.distributed(of.dataset()))
    first, second, third = itertools.islice(batches, 3)
    assert {tensor.device for batch in (first, second, third) for tensor in batch} == {DEVICE}
    assert [float(tf.reduce_mean(x)) for x, _ in (first, second)] == [1.0, 2.0]
    assert (third[0].shape, third[1].dtype) == ((BATCH, *SHAPE), tf.int32)
    again = of.distributed(tf.data.Dataset.from_tensors(of.late_batches[0]).repeat())
    assert again.element_spec == of.distributed(of.dataset()).element_spec, "the gate's last proof would compile anew"


@pytest.mark.parametrize(("device_prefetch", "waiting", "device"), [(0, 2, HOST), (1, 2, DEVICE), (3, 6, DEVICE)])
@pytest.mark.parametrize("name", ["none", "one_device"])
def test_as_many_batches_as_were_asked_for_wait_on_the_device_and_on_the_host(
    tf: Any, name: str, device_prefetch: int, waiting: int, device: str, tmp_path: Path
) -> None:
    made = [threading.Event() for _ in range(1 + waiting)]

    def numbers() -> Iterator[np.ndarray[Any, Any]]:
        for event in made:
            event.set()
            yield np.zeros(1, np.float32)

    source = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((1,), tf.float32))
    of = training(tf, name, tmp_path, device_prefetch)
    batches = iter(of.distributed(source))
    assert next(batches).device == device
    assert all(event.wait(FAR_TOO_LONG_S) for event in made)
    assert of.hand_over[-1] == SAID[name, device_prefetch]


def test_on_the_hosts_own_processor_batches_are_made_ahead_and_not_copied(tf: Any) -> None:
    made = [threading.Event() for _ in range(3)]

    def numbers() -> Iterator[np.ndarray[Any, Any]]:
        for event in made:
            event.set()
            yield np.zeros(1, np.float32)

    source = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((1,), tf.float32))
    ahead = ahead_on_device(source, HOST, 1)
    next(batches := iter(ahead))
    assert all(event.wait(FAR_TOO_LONG_S) for event in made)
    del batches
    assert "CopyToDevice" not in built(ahead)
    assert "CopyToDevice" in built(ahead_on_device(source, DEVICE, 1))


def built(dataset: Any) -> str:
    """The classes of a pipeline's stages, from the consumer to the source."""
    names = []
    while dataset is not None:
        names.append(type(dataset).__name__)
        dataset = getattr(dataset, "_input_dataset", None)
    return " ".join(names)


class Steps:
    """A pace of single steps that keeps the losses."""

    def __init__(self, count: int) -> None:
        self.left, self.losses = count, list[float]()

    def begin(self) -> int:
        self.left -= 1
        return int(self.left >= 0)

    def end(self, loss: Any) -> None:
        self.losses.append(float(loss))


@pytest.mark.parametrize("loop", [CustomLoop, FitLoop])
def test_both_loops_train_without_a_strategy_as_with_one_and_trace_their_step_once(
    tf: Any, loop: Any, tmp_path: Path
) -> None:
    losses = {}
    for name in strategies(tf):
        import keras

        keras.utils.set_random_seed(1)
        of, pace = training(tf, name, tmp_path), Steps(5)
        driver = loop(of)
        driver.run(pace)
        traced = driver.traces()
        for x, y in of.late_batches:
            due = float(tf.reduce_mean(of.loss(y, of.model(x))))
            assert float(driver.step_on(x, y)) == pytest.approx(due, rel=1e-5), "each late batch has its turn"
        assert driver.traces() == traced
        losses[name] = pace.losses
    assert losses["none"] == pytest.approx(losses["one_device"], rel=1e-6)
    assert len(set(losses["none"])) == 5
