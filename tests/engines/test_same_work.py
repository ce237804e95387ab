"""Models, loss, optimizers and images are TensorFlow's: the same weights give the same numbers in both."""

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import Unsupported
from harness.protocol.engine import GATE_UPDATES
from harness.protocol.messages import Request
from harness.spec.axes import TABLE
from harness.spec.cell import TrainingCell
from harness.trial.same_work.architectures import architectures
from harness.trial.same_work.batches import CLASSES, Data, resized
from harness.trial.same_work.catalogue import AXES_OF_TRAININGS
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.shuffle import shuffled
from harness.trial.same_work.trainer import refuse_what_is_tensorflows
from tests.axes import pair_of
from tests.engines.sweeps import COMPILED_SOON
from tests.synthetic import make_cell

ROOT = Path(__file__).parents[3]
SHAPE = (12, 12, 1)
OF_JAX = """
import sys
import jax, numpy as np
from harness.engines._on_jax.model import TrainedModel
from harness.engines.jax.models import models
from harness.trial.same_work.optimizers import OPTIMIZERS

for model in models().values():
    given = np.load(f"{sys.argv[1]}/{model.name}.npz")
    names = list(model.architecture.initial(np.random.default_rng(0), 10))
    weights = {name: given[f"w{i}"] for i, name in enumerate(names)}
    trained = TrainedModel(model, OPTIMIZERS["sgd"], jax.devices()[:1], len(given["y"]))
    of = jax.jit(trained.passed)(weights, model.architecture.statistics(), given["x"], given["y"])
    arrays = [*(of.gradients[name] for name in names), *map(of.statistics.get, model.architecture.statistics())]
    np.savez(f"{sys.argv[1]}/{model.name}-engine.npz", *arrays, loss=of.loss)
"""
OF_KERAS = """
import sys
from harness.engines.keras_distribution import ENGINE
ENGINE.preload()
import jax, numpy as np
from harness.engines._on_jax.model import Model, TrainedModel
from harness.engines.keras_distribution.reference import forward_of
from harness.trial.same_work.architectures import architectures
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.state import StateOrder

for name, architecture in architectures().items():
    given = np.load(f"{sys.argv[1]}/{name}.npz")
    names, kept = list(architecture.initial(np.random.default_rng(0), 10)), list(architecture.statistics())
    model = Model(architecture, forward_of(name, StateOrder(names, kept, (), 0)))
    trained = TrainedModel(model, OPTIMIZERS["sgd"], jax.devices()[:1], len(given["y"]))
    weights = {key: given[f"w{i}"] for i, key in enumerate(names)}
    of = jax.jit(trained.passed)(weights, architecture.statistics(), given["x"], given["y"])
    arrays = [*(of.gradients[key] for key in names), *map(of.statistics.get, kept)]
    np.savez(f"{sys.argv[1]}/{name}-engine.npz", *arrays, loss=of.loss)
"""
MODELS_OF_TORCH = """
import sys
import numpy as np
from torch.nn import functional
from harness.engines.torch.models import module_of
from harness.engines.torch.reference import as_tensors
from harness.trial.same_work.architectures import architectures

for name, architecture in architectures().items():
    given = np.load(f"{sys.argv[1]}/{name}.npz")
    names, kept = list(architecture.initial(np.random.default_rng(0), 10)), list(architecture.statistics())
    module = module_of(name, {key: given[f"w{i}"] for i, key in enumerate(names)}, architecture.statistics(), 10)
    x, y = as_tensors(given["x"], given["y"])
    loss = functional.cross_entropy(module(x), y)
    loss.backward()
    wanted = {key: given[f"g{i}"] for i, key in enumerate([*names, *kept])}
    of_weights, of_kept = ({key: wanted[key] for key in keys} for keys in (names, kept))
    other = module_of(name, of_weights, of_kept, 10)  # what is wanted lies where PyTorch has its own
    pairs = [(own.grad, put) for own, put in zip(module.parameters(), other.parameters(), strict=True)]
    pairs += [(own, put) for own, put in zip(module.buffers(), other.buffers(), strict=True) if own.is_floating_point()]
    assert len(pairs) == len(wanted)
    arrays = {f"arr_{i}": own for i, (own, _) in enumerate(pairs)}
    np.savez(f"{sys.argv[1]}/{name}-engine.npz", **arrays, loss=loss.detach())
    np.savez(f"{sys.argv[1]}/{name}-wanted.npz", *(put.detach() for _, put in pairs))
"""
STRIDES_OF_TORCH = """
import numpy as np
from harness.engines.torch.reference import as_tensors

strides = [as_tensors(np.zeros((2, 6, 5, channels), np.float32), np.zeros(2))[0].stride() for channels in (1, 3)]
assert strides == [(30, 30, 5, 1), (90, 30, 5, 1)], strides
"""
UPDATES_OF_TORCH = """
import sys
import numpy as np, torch
from harness.engines.torch.optimizers import CountedOptimizer
from harness.trial.same_work.optimizers import OPTIMIZERS

generator = np.random.default_rng(5)
for name, formula in OPTIMIZERS.items():
    start = generator.normal(size=50).astype(np.float32)
    parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
    own, weight = CountedOptimizer(name, [parameter]), start.astype(np.float64)
    slots = {slot: np.zeros(50) for slot in formula.slots}
    for number in (1, 2, 3):
        gradient = generator.normal(size=50).astype(np.float32)
        parameter.grad = torch.from_numpy(gradient)
        own.optimizer.step()
        weight, slots = formula.update(weight, gradient, slots, number)
        np.testing.assert_allclose(parameter.detach() - start, weight - start, rtol=2e-3, atol=2e-7, err_msg=name)
        for slot, value in slots.items():
            np.testing.assert_allclose(own.slot(slot, parameter), value, rtol=1e-4, atol=1e-7, err_msg=name)
    assert own.steps == 3
"""
EACH = """
import json, pathlib, sys, traceback

folder, raised = pathlib.Path(sys.argv[1]), {}
for code in json.loads((folder / "pieces.json").read_text()):
    try:
        exec(code, {})
    except Exception:
        raised[code] = traceback.format_exc()
(folder / "raised.json").write_text(json.dumps(raised))
"""
"""Runs pieces of code one after the other, and keeps what each has raised."""


def keras_side(tf: Any, name: str) -> "tuple[list[Any], Any, Any, float, list[Any]]":
    """(weights, x, y, loss, gradients and then statistics) of TensorFlow's model of the name."""
    from harness.engines.tensorflow.workloads import load_workload, loss_of

    model = load_workload(name).build(architectures()[name].input_shape, 10)
    generator = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(generator.normal(scale=0.1, size=variable.shape).astype(np.float32))
    x = generator.standard_normal((6, *architectures()[name].input_shape), dtype=np.float32)
    y = generator.integers(10, size=6, dtype=np.int32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(loss_of(model)(tf.constant(y), model(tf.constant(x), training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    weights = [variable.numpy() for variable in model.trainable_variables]
    found = [value.numpy() for value in (*gradients, *model.non_trainable_variables)]
    return weights, x, y, float(loss), found


@pytest.fixture(scope="module")
def of_keras(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, dict[str, float]]":
    """The folder with every model's weights, batch, gradients and statistics afterwards; and the losses."""
    folder, losses = tmp_path_factory.mktemp("keras"), {}
    for name in architectures():
        weights, x, y, losses[name], found = keras_side(tf, name)
        arrays = {f"w{i}": weight for i, weight in enumerate(weights)} | {f"g{i}": g for i, g in enumerate(found)}
        np.savez(folder / f"{name}.npz", x=x, y=y, **arrays)
    return folder, losses


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which they are prepared."""
    from harness.engines.tensorflow.data import sources

    folder = tmp_path_factory.mktemp("digits")
    sources()["digits"].prepare(folder)
    return folder


@pytest.mark.parametrize(("processes", "seed"), [(1, 0), (2, 1), (3, 2**31 + 5)])
def test_the_digits_come_in_the_batches_and_in_the_order_of_tensorflows_pipeline(
    tf: Any, digits: Path, processes: int, seed: int
) -> None:
    from harness.engines.tensorflow.data import sources
    from harness.engines.tensorflow.data.pipeline import pipeline

    size, steps = 96, 45  # more than two passes
    tf.keras.utils.set_random_seed(seed)
    parts = [
        pipeline(sources()["digits"], digits, SHAPE, CLASSES, size // processes, seed, shard=(process, processes))
        for process in range(processes)
    ]
    for process, part in enumerate(parts):
        share = slice(process * size // processes, (process + 1) * size // processes)
        ours = Data("digits", SHAPE, size, seed, ahead=0, share=share, processes=processes).batches(lambda batch: batch)
        theirs = part.take(steps).as_numpy_iterator()
        for own, (x, y) in zip(itertools.islice(ours, GATE_UPDATES, None), theirs, strict=False):
            np.testing.assert_array_equal(own[1], y)
            np.testing.assert_allclose(own[0], x, atol=1e-6)


@pytest.mark.parametrize("buffer", [1, 7, 99, 100, 250])
def test_a_shuffle_buffer_of_any_size_draws_as_tensorflows(tf: Any, buffer: int) -> None:
    numbers = np.arange(100)
    tf.keras.utils.set_random_seed(4)
    theirs = tf.data.Dataset.from_tensor_slices(numbers).shuffle(buffer, seed=4).repeat(3)
    ours = np.concatenate(list(itertools.islice(shuffled(numbers, buffer, 4), 3)))
    assert ours.tolist() == [int(number) for number in theirs.as_numpy_iterator()]


def run(python: str, code: str, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **COMPILED_SOON}
    subprocess.run([python, "-c", code, *arguments], env=environment, check=True)


def hold(folder: Path, name: str, loss: float, wanted: "list[Any]") -> None:
    with np.load(folder / f"{name}-engine.npz") as found:
        np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
        for i, value in enumerate(wanted):
            np.testing.assert_allclose(found[f"arr_{i}"], value, rtol=1e-3, atol=1e-5, err_msg=f"{name} {i}")


def on_jax(of_keras: "tuple[Path, dict[str, float]]", python: str, code: str) -> None:
    folder, losses = of_keras
    run(python, code, str(folder))
    for name, loss in losses.items():
        with np.load(folder / f"{name}.npz") as given:
            hold(folder, name, loss, [given[key] for key in given if key.startswith("g")])


def test_loss_and_gradients_of_every_jax_model_are_tensorflows(
    of_keras: "tuple[Path, dict[str, float]]", jax_python: str
) -> None:
    on_jax(of_keras, jax_python, OF_JAX)


def test_loss_and_gradients_of_every_keras_model_on_jax_are_tensorflows(
    of_keras: "tuple[Path, dict[str, float]]", keras_python: str
) -> None:
    on_jax(of_keras, keras_python, OF_KERAS)


@pytest.fixture(scope="module")
def on_torch(of_keras: "tuple[Path, dict[str, float]]", torch_python: str) -> Callable[[str], object]:
    """Raises what a piece of code has: those for PyTorch run one after the other in one process that imports it."""
    folder, _ = of_keras
    (folder / "pieces.json").write_text(json.dumps([MODELS_OF_TORCH, STRIDES_OF_TORCH, UPDATES_OF_TORCH]))
    run(torch_python, EACH, str(folder))
    raised = json.loads((folder / "raised.json").read_text())

    def must_have_gone_well(code: str) -> None:
        assert code not in raised, raised[code]

    return must_have_gone_well


def test_loss_and_gradients_of_every_pytorch_model_are_tensorflows(
    of_keras: "tuple[Path, dict[str, float]]", on_torch: Callable[[str], object]
) -> None:
    folder, losses = of_keras
    on_torch(MODELS_OF_TORCH)
    for name, loss in losses.items():
        with np.load(folder / f"{name}-wanted.npz") as given:
            hold(folder, name, loss, [given[key] for key in given])


def test_a_batch_lies_channels_first_in_pytorch_as_its_users_have_it(on_torch: Callable[[str], object]) -> None:
    on_torch(STRIDES_OF_TORCH)


def test_three_updates_of_every_pytorch_optimizer_are_those_of_the_formula(on_torch: Callable[[str], object]) -> None:
    on_torch(UPDATES_OF_TORCH)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_updates_of_every_optimizer_are_those_of_keras(tf: Any, name: str) -> None:
    from harness.engines._keras.optimizers import KERAS

    generator = np.random.default_rng(5)
    start = generator.normal(size=50).astype(np.float32)
    variable, theirs = tf.Variable(start), KERAS[name].build({})
    weight, slots = start.astype(np.float64), {slot: np.zeros(50) for slot in OPTIMIZERS[name].slots}
    for number in (1, 2, 3):
        gradient = generator.normal(size=50).astype(np.float32)
        theirs.apply_gradients([(tf.constant(gradient), variable)])
        weight, slots = OPTIMIZERS[name].update(weight, gradient, slots, number)
        np.testing.assert_allclose(weight - start, variable.numpy() - start, rtol=2e-3, atol=2e-7)


@pytest.mark.parametrize("name", architectures())
def test_every_model_begins_under_tensorflow_with_the_weights_of_the_other_engines(tf: Any, name: str) -> None:
    from harness.engines.tensorflow.training import build_model
    from harness.engines.tensorflow.workloads import load_workload

    workload = load_workload(name)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    model, _ = build_model(workload, make_cell("mirrored", 2, model=name), 10, seed=7, strategy=strategy)
    wanted = architectures()[name].initial(np.random.default_rng(7), 10)
    for weight, (key, value) in zip(model.trainable_variables, wanted.items(), strict=True):
        assert np.array_equal(weight.numpy(), value), key
    if name == "transformer":  # of another size it is no model of theirs, and has Keras' own
        other, _ = build_model(load_workload("transformer(layers=1)"), make_cell(model=name), 10, seed=7)
        assert len(other.trainable_variables) < len(wanted)


def test_images_are_resized_as_tensorflow_does_it(tf: Any) -> None:
    images = np.random.default_rng(2).random((3, 8, 8, 1), dtype=np.float32)
    for size in (28, 32):
        theirs = tf.image.resize(images, (size, size)).numpy()
        np.testing.assert_allclose(resized(images, (size, size, 1)), theirs, atol=1e-6)


def test_weights_are_as_many_and_of_the_spread_of_glorots_initialiser() -> None:
    for model, count in (("mlp", 669_706), ("mnist_cnn", 121_930), ("transformer", 71_946), ("resnet20", 269_722)):
        weights = architectures()[model].initial(np.random.default_rng(1), 10)
        assert sum(weight.size for weight in weights.values()) == count
    kernel = architectures()["mlp"].initial(np.random.default_rng(1), 10)["dense_1/kernel"]
    limit = (6 / 1024) ** 0.5
    assert 0.99 * limit < abs(kernel).max() <= limit
    assert kernel.std() == pytest.approx(limit / 3**0.5, rel=0.01)


def refused(cell: TrainingCell, taken: Collection[str] = AXES_OF_TRAININGS) -> str:
    """What an engine beside TensorFlow says of a cell of which it has `taken` these keys; empty where it takes it."""
    request = Request(cell=cell, seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1)
    try:
        refuse_what_is_tensorflows(request, "Mine", "compiles nothing", taken)
    except Unsupported as unsupported:
        return str(unsupported)
    return ""


@pytest.mark.parametrize("key", TABLE)
def test_no_axis_is_without_effect_on_the_other_engines(key: str) -> None:
    assert key in AXES_OF_TRAININGS or any(refused(cell) for cell in pair_of(key))


def test_an_axis_that_nobody_told_the_other_engines_of_is_refused_away_from_its_default() -> None:
    class Wider(TrainingCell):
        added: int = 0

    plain = pair_of("engine")[0].model_dump()
    assert refused(Wider(**plain)) == ""
    expected = "added: Mine has nothing that it would change; leave the flag out"
    assert refused(Wider(**plain, added=1)) == expected


def test_an_engine_refuses_a_key_that_the_others_take_where_it_has_no_use_for_it() -> None:
    more = pair_of("prefetch")[1]
    assert refused(more) == ""
    assert refused(more, AXES_OF_TRAININGS - {"prefetch"}).startswith("prefetch: Mine has nothing that it would change")
