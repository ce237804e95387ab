"""The loop of Model.fit: its windows, and synthetic data that lie on the devices."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.loops.custom import CustomLoop
from harness.engines.tensorflow.loops.fit import FitLoop
from harness.engines.tensorflow.training import Training
from harness.errors import Unsupported
from tests.engines.tensorflow.fitted import BATCHES, CLASSES, SHAPE, Paced, ops, training
from tests.record.examples import cell


@pytest.mark.usefixtures("tf")
def test_a_model_whose_own_compile_the_cells_would_replace_is_unsupported() -> None:
    import keras

    class OfTwo(keras.Sequential):
        def compile(self, first: Any, second: Any) -> None:
            super().compile(first)
            self.second = second

    of_cell = SimpleNamespace(mesh="", micro_batches=1)
    asked = SimpleNamespace(request=SimpleNamespace(member=None), cell=of_cell, model=OfTwo())
    with pytest.raises(Unsupported, match=r"^loop 'fit': the model has its own compile, .* of your own \(--step\)$"):
        FitLoop(asked)  # type: ignore[arg-type]


def test_the_mean_of_keras_loss_overflows_under_central_storage_which_is_unsupported(tf: Any, tmp_path: Path) -> None:
    import keras

    with tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0").scope():
        model = keras.Sequential([keras.Input(SHAPE), keras.layers.Dense(CLASSES)])
        model.compile("sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    endless = tf.data.Dataset.from_tensors(BATCHES[0]).repeat()
    told = model.fit(endless, epochs=1, steps_per_epoch=130, verbose=0).history["loss"]
    assert not np.isfinite(told).any(), "Keras counts it right: it can be taken"
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    of: Any = training(tf, 2, tmp_path)
    of.request.training = cell(strategy="central_storage", replicas=2, loop="fit")
    with pytest.raises(Unsupported, match=r"^loop 'fit': under central_storage .* use --loop custom$"):
        FitLoop(of)


@pytest.mark.parametrize("replicas", [1, 2])
def test_synthetic_data_lie_on_the_devices_and_no_iterator_stands_in_the_step(
    tf: Any, replicas: int, tmp_path: Path
) -> None:
    of = training(tf, replicas, tmp_path)
    loop, pace = FitLoop(of), Paced([1, 1, 3])
    loop.run(pace)
    assert "MatMul" in ops(loop.program())
    assert "IteratorGetNext" not in ops(loop.program())
    assert of.optimizer.iterations.numpy() == 5
    float(loop.step_on(*of.late_batches[0]))
    assert loop.traces() == 1
    assert of.input == [], "no pipeline was built"


@pytest.mark.parametrize("replicas", [1, 2])
def test_its_first_losses_are_those_of_the_custom_loop_and_its_last_state_too(
    tf: Any, replicas: int, tmp_path: Path
) -> None:
    losses, weights = [], []
    for kind in (FitLoop, CustomLoop):
        of, pace = training(tf, replicas, tmp_path), Paced([1, 1, 4])
        if kind is CustomLoop:
            import keras

            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
            of = Training(**{**vars(of), "loss": loss})
        kind(of).run(pace)
        losses.append(pace.losses[:2])
        weights.append([variable.numpy() for variable in of.model.trainable_variables])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for fitted, trained in zip(*weights, strict=True):
        np.testing.assert_allclose(fitted, trained, rtol=1e-4, atol=1e-6)


def test_windows_have_the_steps_that_were_asked_for_and_the_pace_ends_training(tf: Any, tmp_path: Path) -> None:
    of = training(tf, 1, tmp_path)
    counted: list[int] = []
    FitLoop(of).run(Paced([1, 1, 2, 5], lambda: counted.append(int(of.optimizer.iterations.numpy()))))
    assert counted == [1, 2, 4, 9]


def test_keras_reads_each_steps_metrics_before_the_next_step_with_a_callback_or_without(
    tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So counting steps in a callback costs fit nothing that it would not pay; with another Keras it might."""
    import keras

    readers: list[threading.Thread] = []
    read = keras.callbacks.CallbackList._on_train_batch_end

    def noted(callbacks: Any, batch: int, logs: Any = None) -> None:
        readers.append(threading.current_thread())
        read(callbacks, batch, logs)

    monkeypatch.setattr(keras.callbacks.CallbackList, "_on_train_batch_end", noted)
    model = training(tf, 1, tmp_path).model
    model.compile("sgd", "mse")
    model.fit(np.zeros((6, *SHAPE)), np.zeros((6, CLASSES)), batch_size=2, verbose=0)
    assert readers == [threading.main_thread()] * 3


def test_a_compiled_step_is_recorded_as_compiled(tf: Any, tmp_path: Path) -> None:
    for xla in (False, True):
        loop = FitLoop(training(tf, 1, tmp_path, xla))
        loop.run(Paced([1, 1]))
        assert loop.executed().xla_clusters == int(xla)
