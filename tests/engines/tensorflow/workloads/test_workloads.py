"""The registry of models."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.data.base import Tokens
from harness.engines.tensorflow.data.pipeline import gate_batches
from harness.engines.tensorflow.workloads import load_workload, workloads
from harness.errors import UsageError

OF_IMAGES = ("mnist_cnn", "mlp", "resnet20", "transformer")
OF_TOKENS = ("gpt", "bert", "lstm", "recommender")


def test_names_are_listed_without_importing_tensorflow_or_numpy() -> None:
    script = (
        "import sys, harness.engines.tensorflow.workloads as w; "
        "assert len(w.workloads()) >= 4; assert len(w.OPTIMIZERS) == 3; "
        "heavy = {'tensorflow', 'keras', 'numpy', 'tensorflow_datasets'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_model_says_what_it_is_and_what_it_takes() -> None:
    assert set(workloads()) == {*OF_IMAGES, *OF_TOKENS, "lenet", "alexnet"}
    assert all(workload.summary and workload.input_shape for workload in workloads().values())
    assert {name for name, workload in workloads().items() if workload.tokens} == set(OF_TOKENS)


@pytest.mark.parametrize(
    ("text", "classes", "published"),
    [
        ("lenet", 10, 1_663_370),
        ("alexnet", 1000, 61_100_840),
        ("gpt(layers=12,width=768,heads=12,tokens=1024,vocabulary=50257)", 0, 124_439_808),
        ("bert(layers=12,width=768,heads=12,tokens=512,vocabulary=30522)", 2, 109_482_240 + 2 * 768 + 2),
        ("lstm(width=64,tokens=40,vocabulary=1000)", 5, 1000 * 64 + 4 * (2 * 64**2 + 64) + 5 * 65),
        ("recommender(features=3,rows=100,width=4)", 2, 3 * 100 * 4 + 64 * 13 + 2 * 65),
    ],
)
def test_a_model_has_as_many_weights_as_were_published(tf: Any, text: str, classes: int, published: int) -> None:
    with tf.Graph().as_default():  # where nobody asks for a weight's value, it takes no memory
        workload = load_workload(text)
        assert workload.build(workload.input_shape or (), classes).count_params() == published


@pytest.mark.parametrize("name", OF_TOKENS)
@pytest.mark.parametrize("data", ["synthetic", "text"])
def test_a_model_of_tokens_takes_what_data_make_of_it(tf: Any, name: str, data: str) -> None:
    workload = load_workload(name)
    source = load_source(data).fitting(workload.tokens)
    assert workload.tokens is not None
    [(x, y)] = gate_batches(source, Path(), workload.input_shape or (), 10, 4, 1)
    assert x.shape == (4, workload.tokens.count)
    assert 0 <= x.min() <= x.max() < workload.tokens.vocabulary
    predicted = workload.build(workload.input_shape or (), 10)(x)
    assert predicted.dtype == tf.float32
    assert predicted.shape[:-1] == y.shape
    assert 0 <= y.min() <= y.max() < predicted.shape[-1]


@pytest.mark.usefixtures("tf")
def test_the_next_byte_of_a_text_is_what_is_asked_and_a_piece_is_of_one_tenth() -> None:
    def of(each: bool) -> Any:
        source = load_source("text").fitting(Tokens(32, 256, each))
        return next(iter(source.examples(Path()).batch(4000)))

    x, y = of(each=True)
    assert bool((x[:, 1:] == y[:, :-1]).numpy().all())
    tenths = of(each=False)[1].numpy()
    assert (tenths[0], sorted(tenths.tolist())) == (0, tenths.tolist())


@pytest.mark.parametrize(
    ("model", "data", "says"),
    [
        ("gpt", "digits", "data: 'digits' has images, and the model takes 64 whole numbers, expected --data text or"),
        ("mlp", "text", "data: 'text' goes with a model of tokens, expected --model gpt, bert or lstm"),
        ("gpt(vocabulary=100)", "text", "'text' are bytes: give vocabulary=256"),
    ],
)
def test_data_and_models_that_do_not_go_together_are_one_line(model: str, data: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_source(data).fitting(load_workload(model).tokens)
    assert says in str(raised.value)


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"model: 'mnist_cn' is not one of .*package\.module:function.*'mnist_cnn'\?"):
        load_workload("mnist_cn")


@pytest.mark.parametrize("name", OF_IMAGES)
def test_every_model_gives_float32_logits_under_mixed_precision(tf: Any, name: str) -> None:
    import keras

    workload = load_workload(name)
    assert workload.input_shape is not None
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = workload.build(workload.input_shape, 7)
        logits = model(tf.zeros((2, *workload.input_shape)), training=True)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert logits.shape == (2, 7)
    assert logits.dtype == tf.float32
    assert not model.compiled


@pytest.mark.parametrize("name", OF_IMAGES)
def test_every_model_learns_with_dense_gradients_for_every_weight(tf: Any, name: str) -> None:
    workload = load_workload(name)
    assert workload.input_shape is not None
    model = workload.build(workload.input_shape, 10)
    x = tf.random.stateless_normal((4, *workload.input_shape), (1, 2))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x, training=True) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)
    assert all(bool(tf.reduce_all(tf.math.is_finite(gradient))) for gradient in gradients)


@pytest.mark.parametrize("name", OF_IMAGES)
def test_the_same_weights_and_batch_give_the_same_answer_in_training(tf: Any, name: str) -> None:
    workload = load_workload(name)
    assert workload.input_shape is not None
    model = workload.build(workload.input_shape, 10)
    x = tf.random.stateless_normal((4, *workload.input_shape), (1, 2))
    tf.debugging.assert_near(model(x, training=True), model(x, training=True))


@pytest.mark.parametrize("name", OF_IMAGES)
def test_every_model_builds_under_a_mirrored_strategy(tf: Any, name: str) -> None:
    workload = load_workload(name)
    assert workload.input_shape is not None
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = workload.build(workload.input_shape, 10)
    assert all(len(strategy.experimental_local_results(v.value)) == 2 for v in model.trainable_variables)
