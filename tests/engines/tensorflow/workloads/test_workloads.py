"""The registry of models."""

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from harness.engines.tensorflow.workloads import Workload, load_workload, workloads
from harness.errors import UsageError
from harness.trial.examples import random_batch

DENSE = ["alexnet", "gpt", "lenet", "mlp", "mnist_cnn", "resnet20", "transformer"]
SPARSE = {"bert": 1, "lstm": 1, "recommender": 4}
"""Models with embeddings, and how many of their weights have gradients for some rows only."""
MODELS = [*DENSE, *SPARSE]


OF_EACH_KIND = ["gpt", "lstm", "recommender", "resnet20"]
"""Of attention, of a recurrence, of several inputs, and of convolutions with batch normalisation."""


@pytest.fixture(scope="module")
def built(tf: Any) -> Callable[[str], Any]:  # noqa: ARG001 - sets TensorFlow up
    """Models by name, each built once."""

    @functools.cache
    def build(name: str) -> Any:
        workload = load_workload(name)
        assert workload.input_shape is not None
        return workload.build(workload.input_shape, 10)

    return build


def inputs_of(workload: Workload) -> Any:
    """Four examples of what a model takes."""
    import tensorflow as tf

    assert workload.input_shape is not None
    return tf.constant(random_batch(workload.input_shape, 10, 4, 1, workload.vocabulary)[0])


def test_names_are_listed_without_importing_tensorflow_or_numpy() -> None:
    script = (
        "import sys, harness.engines.tensorflow.workloads as w; "
        "assert len(w.workloads()) >= 4; assert len(w.OPTIMIZERS) >= 3; "
        "heavy = {'tensorflow', 'keras', 'numpy', 'tensorflow_datasets'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_model_is_registered_with_a_summary() -> None:
    assert set(workloads()) == {*MODELS}
    assert all(workload.summary for workload in workloads().values())


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"model: 'mnist_cn' is not one of .*package\.module:function.*'mnist_cnn'\?"):
        load_workload("mnist_cn")


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_float32_logits_under_mixed_precision(tf: Any, name: str) -> None:
    import keras

    workload = load_workload(name)
    assert workload.input_shape is not None
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = workload.build(workload.input_shape, 7)
        logits = model(inputs_of(workload), training=True)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert logits.shape == ((4, 32, 256) if name == "gpt" else (4, 7))
    assert logits.dtype == tf.float32
    assert not model.compiled


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_with_a_gradient_for_every_weight_and_dense_but_for_embeddings(
    tf: Any, built: Callable[[str], Any], name: str
) -> None:
    model, x = built(name), inputs_of(load_workload(name))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x, training=True) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert [type(gradient) for gradient in gradients].count(tf.IndexedSlices) == SPARSE.get(name, 0)
    assert all(bool(tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(gradient)))) for gradient in gradients)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_weights_and_batch_give_the_same_answer_in_training(
    tf: Any, built: Callable[[str], Any], name: str
) -> None:
    model, x = built(name), inputs_of(load_workload(name))
    tf.debugging.assert_near(model(x, training=True), model(x, training=True))


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_models_are_built_under_a_mirrored_strategy(tf: Any, name: str) -> None:
    workload = load_workload(name)
    assert workload.input_shape is not None
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = workload.build(workload.input_shape, 10)
    assert all(len(strategy.experimental_local_results(v.value)) == 2 for v in model.trainable_variables)
