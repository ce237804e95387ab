"""Models, loss, optimizers and images are TensorFlow's: the same weights give the same numbers in both."""

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.jax.data import resized
from harness.engines.jax.models import models
from harness.engines.jax.optimizers import OPTIMIZERS

ROOT = Path(__file__).parents[3]
ASKED = """
import sys
import jax, numpy as np
from harness.engines.jax.loops.base import TrainedModel
from harness.engines.jax.models import models
from harness.engines.jax.optimizers import OPTIMIZERS

folder = sys.argv[1]
for model in models().values():
    given = np.load(f"{folder}/{model.name}.npz")
    names = list(model.initial(np.random.default_rng(0), 10))
    weights = {name: given[f"w{i}"] for i, name in enumerate(names)}
    trained = TrainedModel(model, OPTIMIZERS["sgd"], jax.devices()[:1], len(given["y"]))
    of = jax.jit(trained.passed)(weights, model.statistics(), given["x"], given["y"])
    arrays = [*(of.gradients[name] for name in names), *(of.statistics[name] for name in model.statistics())]
    np.savez(f"{folder}/{model.name}-jax.npz", *arrays, loss=of.loss)
"""


def keras_side(tf: Any, name: str) -> "tuple[list[Any], Any, Any, float, list[Any]]":
    """(weights, x, y, loss, gradients and then statistics) of TensorFlow's model of the name."""
    from harness.engines.tensorflow.workloads import load_workload, loss_of

    model = load_workload(name).build(models()[name].input_shape, 10)
    generator = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(generator.normal(scale=0.1, size=variable.shape).astype(np.float32))
    x = generator.standard_normal((6, *models()[name].input_shape), dtype=np.float32)
    y = generator.integers(10, size=6, dtype=np.int32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(loss_of(model)(tf.constant(y), model(tf.constant(x), training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    weights = [variable.numpy() for variable in model.trainable_variables]
    found = [value.numpy() for value in (*gradients, *model.non_trainable_variables)]
    return weights, x, y, float(loss), found


def test_loss_and_gradients_of_every_model_are_tensorflows(tf: Any, jax_python: str, tmp_path: Path) -> None:
    wanted = {}
    for name in models():
        weights, x, y, loss, gradients = keras_side(tf, name)
        np.savez(tmp_path / f"{name}.npz", x=x, y=y, **{f"w{i}": weight for i, weight in enumerate(weights)})
        wanted[name] = loss, gradients
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    subprocess.run([jax_python, "-c", ASKED, str(tmp_path)], env=environment, check=True)
    for name, (loss, gradients) in wanted.items():
        with np.load(tmp_path / f"{name}-jax.npz") as found:
            np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
            for i, gradient in enumerate(gradients):
                np.testing.assert_allclose(found[f"arr_{i}"], gradient, rtol=1e-3, atol=1e-5, err_msg=f"{name} {i}")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_updates_of_every_optimizer_are_those_of_keras(tf: Any, name: str) -> None:
    from harness.engines.tensorflow.workloads.optimizers import _BY_NAME

    generator = np.random.default_rng(5)
    start = generator.normal(size=50).astype(np.float32)
    variable, theirs = tf.Variable(start), _BY_NAME[name].build()
    weight, slots = start.astype(np.float64), {slot: np.zeros(50) for slot in OPTIMIZERS[name].slots}
    for number in (1, 2, 3):
        gradient = generator.normal(size=50).astype(np.float32)
        theirs.apply_gradients([(tf.constant(gradient), variable)])
        weight, slots = OPTIMIZERS[name].update(weight, gradient, slots, number)
        np.testing.assert_allclose(weight - start, variable.numpy() - start, rtol=2e-3, atol=2e-7)


def test_images_are_resized_as_tensorflow_does_it(tf: Any) -> None:
    images = np.random.default_rng(2).random((3, 8, 8, 1), dtype=np.float32)
    for size in (28, 32):
        theirs = tf.image.resize(images, (size, size)).numpy()
        np.testing.assert_allclose(resized(images, (size, size, 1)), theirs, atol=1e-6)


def test_weights_are_as_many_and_of_the_spread_of_glorots_initialiser() -> None:
    for model, count in (("mlp", 669_706), ("mnist_cnn", 121_930), ("transformer", 71_946), ("resnet20", 269_722)):
        weights = models()[model].initial(np.random.default_rng(1), 10)
        assert sum(weight.size for weight in weights.values()) == count
    kernel = models()["mlp"].initial(np.random.default_rng(1), 10)["dense_1/kernel"]
    limit = (6 / 1024) ** 0.5
    assert 0.99 * limit < abs(kernel).max() <= limit
    assert kernel.std() == pytest.approx(limit / 3**0.5, rel=0.01)
