"""Models at their real sizes have as many weights as were published, counted without making any."""

import math
from typing import Any

import pytest

from harness.engines.tensorflow.workloads import load_workload
from harness.errors import UsageError

PUBLISHED = [
    ("lenet", 10, 0, 1_663_370),  # McMahan et al. 2016
    ("alexnet(side=227,filters=64,units=4096)", 1000, 0, 61_838_248),  # by the layers of tf_cnn_benchmarks
    ("lstm(width=128,tokens=80,vocabulary=20000)", 1, 0, 2_691_713),  # what Keras' summary of its imdb_lstm.py says
    # GPT-2 small: GPT2LMHeadModel of Hugging Face's transformers, 124.44M on https://keras.io/api/keras_hub/models
    ("gpt(layers=12,width=768,heads=12,tokens=1024,vocabulary=50257)", 0, 0, 124_439_808),
    # BERT-base: BertModel of bert-base-uncased there, "110M" in the paper
    ("bert(layers=12,width=768,heads=12,tokens=512,vocabulary=30522)", 2, 2 * 768 + 2, 109_482_240),
]
"""Name, classes, weights of the head that the published count leaves out, and the count. Nobody published one of
tf_cnn_benchmarks' AlexNet: it is the sum over its layers."""


@pytest.mark.parametrize(("name", "classes", "head", "count"), PUBLISHED)
def test_it_has_as_many_weights_as_were_published(tf: Any, name: str, classes: int, head: int, count: int) -> None:
    workload = load_workload(name)
    assert workload.input_shape is not None
    with tf.Graph().as_default():  # where a variable is a node and takes no memory
        model = workload.build(workload.input_shape, classes)
        assert sum(math.prod(weight.shape) for weight in model.trainable_variables) - head == count


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt(heads=5)", r"^model: given 'gpt\(heads=5\)': heads: given 5, expected a divisor of width \(64\)$"),
        ("bert(width=10)", r"heads: given 4, expected a divisor of width \(10\)$"),
        ("alexnet(side=66)", r"side: given 66, expected at least 67$"),
    ],
)
def test_sizes_that_no_model_can_have_are_refused_by_their_name(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_workload(name)


def test_a_token_of_gpt_sees_those_before_it_and_none_behind(tf: Any) -> None:
    model = load_workload("gpt(layers=1)").build((32,), 0)
    text = tf.range(32)[None]
    changed = tf.where(tf.range(32) == 20, 99, text)
    moved = tf.reduce_max(tf.abs(model(text) - model(changed)), axis=-1)[0] > 1e-6
    assert not tf.reduce_any(moved[:20])
    assert tf.reduce_all(moved[20:])


def test_every_token_of_bert_matters_to_what_the_first_one_says(tf: Any) -> None:
    model = load_workload("bert(layers=1)").build((32,), 3)
    text = tf.range(32)[None]
    assert tf.reduce_max(tf.abs(model(text) - model(tf.where(text == 31, 99, text)))) > 1e-6
