"""A model's own variables that Keras does not know: only as long as no step changes them can its updates be proved."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.raw_variables import RawVariables
from harness.errors import Unprovable

Make = Callable[[Any], Any]

WHERE: dict[str, tuple[Make, Callable[[Any], Any]]] = {
    "an attribute": (lambda tf: tf.Variable(1.0, name="own"), lambda own: own.assign(2.0)),
    "trainable or not": (lambda tf: tf.Variable(1.0, trainable=False, name="own"), lambda own: own.assign(2.0)),
    "a list": (lambda tf: [tf.Variable(1.0, name="own")], lambda own: own[0].assign(2.0)),
    "a dict": (lambda tf: {"key": tf.Variable(1.0, name="own")}, lambda own: own["key"].assign(2.0)),
    "a generator": (lambda tf: tf.random.Generator.from_seed(3), lambda own: own.normal((2,))),
}
"""What a layer has as its own, and how that is changed."""


def model_with(own: Any) -> tuple[Any, Any]:
    """A model whose layer has something that is its own, and its optimizer."""
    import keras

    layer = keras.layers.Dense(3)
    layer.own = own
    model = keras.Sequential([keras.Input((4,)), layer, keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model, model.optimizer


@pytest.mark.parametrize("where", WHERE)
def test_one_that_was_changed_is_named_wherever_a_layer_has_it(tf: Any, where: str) -> None:
    make, change = WHERE[where]
    own = make(tf)
    raw = RawVariables(*model_with(own))
    raw.must_be_as_built()
    change(own)
    with pytest.raises(Unprovable, match=r"the step changes (own|StateVar), which Keras does not know"):
        raw.must_be_as_built()


def test_one_that_a_replica_has_changed_is_found(tf: Any) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        own = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN, name="own")
        raw = RawVariables(*model_with(own))
    raw.must_be_as_built()
    strategy.run(lambda: own.assign(3.0))
    with pytest.raises(Unprovable, match="changes own,"):
        raw.must_be_as_built()


def test_one_that_was_made_by_a_step_counts_as_changed(tf: Any) -> None:
    model, optimizer = model_with(None)
    raw = RawVariables(model, optimizer)
    model.layers[0].later = tf.Variable(0.0, name="later")
    with pytest.raises(Unprovable, match="changes later,"):
        raw.must_be_as_built()


def test_what_keras_trains_and_counts_itself_is_none_of_them(tf: Any) -> None:
    model, optimizer = model_with(tf.Variable(1.0, name="own"))
    raw = RawVariables(model, optimizer)
    model.fit(np.ones((4, 4)), np.ones((4, 3)), verbose=0)
    raw.must_be_as_built()
