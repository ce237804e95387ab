"""Several training steps in one call: each on its own batch, by the program whose single steps were proved."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from harness.engines._keras.paced_fit import functions_of_keras
from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.devices import Devices
from harness.engines.tensorflow.loops import instrument_of
from harness.engines.tensorflow.loops.custom import CustomLoop
from harness.engines.tensorflow.loops.fit import FitLoop
from harness.engines.tensorflow.reference import continue_reference
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.structures import stacked
from harness.engines.tensorflow.training import Training
from harness.errors import Unprovable, Unsupported
from harness.record.explain import NO_UPDATE
from harness.record.trial import Plant
from harness.run.process.zygote import Zygote
from harness.trial.examples import random_batch
from tests.engines.sweeps import must_have_passed_the_whole_gate
from tests.record.examples import cell
from tests.run.process.clusters import measured

SHAPE, CLASSES, BATCH = (4,), 10, 8
BATCHES = [random_batch(SHAPE, CLASSES, BATCH, seed) for seed in range(30)]
"""The gate's two, and those of the pipeline: each another, so that one that is left out or comes twice shows."""
WINDOWS = [1, 1, 4, 8]
LOOPS = {"custom": CustomLoop, "fit": FitLoop}


class Paced:
    """Windows of so many steps; keeps the losses."""

    def __init__(self) -> None:
        self._windows, self.losses = iter([*WINDOWS, 0]), list[float]()

    def begin(self) -> int:
        return next(self._windows)

    def end(self, loss: Any) -> None:
        self.losses.append(float(loss))


class OnBatches(Training):
    """A training whose pipeline gives BATCHES, in their order."""

    def dataset(self) -> Any:
        import tensorflow as tf

        gate, rest = (tf.data.Dataset.from_tensor_slices(stacked(some)) for some in (BATCHES[:2], BATCHES[2:]))
        return gate.concatenate(rest.repeat())


def training(tf: Any, a_call: int, replicas: int = 1, loop: str = "custom", data: str = "digits") -> Training:
    """A small model under no strategy, or on two devices, that makes so many steps in a call."""
    import keras

    keras.utils.set_random_seed(1)
    names = tuple(f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(replicas))
    op = tf.distribute.ReductionToOneDevice()  # of collectives one process has one numbering, for all tests
    strategy = tf.distribute.MirroredStrategy(list(names), op) if replicas > 1 else tf.distribute.get_strategy()
    of = cell(
        strategy="mirrored" if replicas > 1 else "none", replicas=replicas, batch_size=BATCH // replicas,
        global_batch_size=BATCH, loop=loop, data=data, steps_per_execution=a_call,
    )  # fmt: skip
    with strategy.scope():
        model = keras.Sequential([keras.Input(SHAPE), keras.layers.Dense(CLASSES)])
        optimizer = keras.optimizers.Adam(0.1)
        optimizer.build(model.trainable_variables)
    request: Any = SimpleNamespace(training=of, member=None, plant=None, data_dir="", seed=1)
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="sum_over_batch_size" if loop == "fit" else None
    )
    devices, workload = Devices(names, replicas, False), Any
    known: Any = (request, devices, strategy, workload, model, optimizer, loss, load_source(data))
    return OnBatches(*known, SHAPE, CLASSES, BATCHES[:2])


def windows(of: Training) -> tuple[list[float], list[Any], Any]:
    """Losses of the windows, weights and optimizer state afterwards, and the loop."""
    loop, pace = LOOPS[of.cell.loop](of), Paced()
    loop.run(pace)
    return pace.losses, state_of(of), loop


def state_of(of: Training) -> list[Any]:
    """Its weights and the optimizer's state."""
    return [variable.numpy() for variable in (*of.model.variables, *of.optimizer.variables)]


class Trained(NamedTuple):
    """A training, what its windows' losses were and what its weights and optimizer state were after them, and the loop,
    with which tests may take steps more."""

    of: Training
    losses: list[float]
    state: list[Any]
    loop: Any


Made = Callable[..., Trained]


@pytest.fixture(scope="module")
def made(tf: Any) -> Made:
    """Trainings by what they are asked, each trained once."""

    @functools.cache
    def trained(a_call: int, replicas: int, loop: str, data: str) -> Trained:
        return Trained(of := training(tf, a_call, replicas, loop, data), *windows(of))

    def asked(a_call: int, replicas: int = 1, loop: str = "custom", data: str = "digits") -> Trained:
        return trained(a_call, replicas, loop, data)

    return asked


@pytest.mark.parametrize(("loop", "replicas"), [("custom", 1), ("custom", 2), ("fit", 1)])
def test_steps_of_one_call_are_those_of_as_many_calls_each_on_its_own_batch(
    made: Made, loop: str, replicas: int
) -> None:
    one_by_one, in_calls = (made(a_call, replicas, loop) for a_call in (1, 4))
    assert in_calls.losses[:2] == pytest.approx(one_by_one.losses[:2], rel=1e-6)
    if loop == "custom":  # Keras tells the mean since the epoch began
        assert in_calls.losses == pytest.approx(one_by_one.losses, rel=1e-6)
    for a, b in zip(one_by_one.state, in_calls.state, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_program_that_is_timed_is_the_one_whose_single_steps_were_proved(made: Made, replicas: int) -> None:
    of, _, _, loop = made(4, replicas)
    updates = of.optimizer.iterations.numpy()
    float(loop.step_on(*of.late_batches[0]))
    assert of.optimizer.iterations.numpy() == updates + 1
    assert loop.traces() == 1


def test_of_fit_too_the_late_step_is_one_of_the_program_that_is_timed(
    tf: Any, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, kind = list[Any](), type(tf.function(lambda: None))
    original = kind.__call__

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        called.append(function)
        return original(function, *args, **kwargs)

    states = []
    for a_call in (1, 4):
        of, _, _, loop = made(a_call, loop="fit")
        updates, traced = of.optimizer.iterations.numpy(), loop.traces()
        monkeypatch.setattr(kind, "__call__", call)
        losses = [float(loop.step_on(*batch)) for batch in of.late_batches]
        monkeypatch.undo()
        assert of.optimizer.iterations.numpy() == updates + len(losses)
        assert loop.traces() == traced
        states.append([losses, *state_of(of)])
    for a, b in zip(*states, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    assert functions_of_keras(loop._step)[0] in called
    assert of.unprovable == []


def test_under_a_strategy_keras_program_of_several_steps_makes_no_single_one_and_is_not_proved(
    tf: Any, made: Made
) -> None:
    """Where it makes one of an iterator that ends, it is to be proved."""
    of, _, _, loop = made(4, 2, "fit")
    with pytest.raises(tf.errors.OutOfRangeError):
        loop._step(loop._alone(*of.late_batches[0]))
    updates = of.optimizer.iterations.numpy()
    float(loop.step_on(*of.late_batches[0]))
    assert of.optimizer.iterations.numpy() == updates + 1
    with pytest.raises(
        Unprovable, match=r"^Keras' program of several steps makes no single one .*; use --loop custom$"
    ):
        continue_reference(of, capture(of.model, of.optimizer), of.late_batches[0], None)
    assert training(tf, 1, 2, "fit").unprovable == []


@pytest.mark.parametrize("loop", LOOPS)
def test_the_record_says_how_many_steps_a_call_makes_and_all_else_of_one_step(made: Made, loop: str) -> None:
    single, several = (made(a_call, loop=loop).loop.executed() for a_call in (1, 4))
    assert (single.steps_a_call, several.steps_a_call) == (None, 4)
    assert several.differs_from_request is None
    assert single.flops_per_step == several.flops_per_step, "that of one step"
    assert "steps_a_call" not in single.model_dump()


def test_a_program_that_makes_another_number_of_steps_than_was_asked_for_says_so(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, _, _, loop = made(4)
    monkeypatch.setattr(of.request, "training", of.cell.model_copy(update={"steps_per_execution": 5}))
    assert loop.executed().differs_from_request == "asked for 5 steps a call; executed 4"


def test_a_batch_that_lies_on_the_devices_is_that_of_all_steps_of_a_call(made: Made) -> None:
    one_by_one, in_calls = (made(a_call, 2, data="synthetic") for a_call in (1, 4))
    for a, b in zip(one_by_one.state, in_calls.state, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_keras_makes_several_steps_of_an_iterator_only(tf: Any) -> None:
    with pytest.raises(Unsupported, match=r"^loop 'fit': of 'synthetic' Keras makes no two steps in one call, .*data$"):
        FitLoop(training(tf, 4, loop="fit", data="synthetic"))


@pytest.mark.slow
def test_keras_own_several_steps_fail_under_mirrored_replicas_that_sum_up_by_collectives(
    preloaded: Callable[[], AbstractContextManager[None]],
) -> None:
    """Without the harness, too; where this fails a later TensorFlow can, and docs/platform.md is to be changed."""
    asked = {
        "strategy": "mirrored",
        "replicas": 2,
        "loop": "fit",
        "steps_per_execution": 4,
        "model": "mlp",
        "data": "iris",
    }
    with preloaded(), Zygote() as zygote:
        summed, copied = (
            measured(zygote, windows=3, cross_device_op=op, **asked) for op in ("auto", "reduction_to_one_device")
        )
    assert (summed.status, copied.status) == ("crashed", "unproved")
    assert copied.reason.startswith("late: Keras' program of several steps makes no single one")
    assert "You must feed a value for placeholder" in summed.reason


@pytest.mark.slow
def test_a_call_that_ends_while_gradients_are_accumulated_is_proved(shared_zygote: Zygote) -> None:
    keys = {"model": "mlp", "data": "iris", "batch_size": 8, "global_batch_size": 8, "steps_per_execution": 3}
    accumulating = {"strategy": "none", "replicas": 1, "optimizer": "sgd(gradient_accumulation_steps=4)"}
    record = measured(shared_zygote, windows=3, **keys, **accumulating)
    must_have_passed_the_whole_gate(record)
    assert record.executed is not None
    assert record.executed.steps_a_call == 3
    assert record.checks.detail["accumulation"] == "each update takes the gradients of 4 steps"


def test_what_is_planted_between_steps_or_takes_them_apart_wants_a_call_for_each(tf: Any) -> None:
    of = training(tf, 4)
    of.request.plant = Plant(kind="host_delay", share=0.1)  # type: ignore[misc]
    with pytest.raises(Unsupported, match=r"^plant: 'host_delay' is for .*: give --steps-per-execution 1$"):
        CustomLoop(of)
    with pytest.raises(Unsupported, match=r"^instrument 'no_update': .* one by one: give --steps-per-execution 1$"):
        instrument_of(training(tf, 4), NO_UPDATE)


def test_a_pass_alone_has_a_batch_though_calls_take_theirs_themselves(made: Made) -> None:
    of, _, _, loop = made(4)
    before = state_of(of)
    assert loop.alone is not None
    loop.alone()
    for a, b in zip(before, state_of(of), strict=True):
        np.testing.assert_array_equal(a, b)
