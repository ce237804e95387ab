"""Models of a user's own whose batches are cut, for `own_nested.tagged`, and the same with a fault each."""

import itertools
from typing import Any

import keras

from harness.engines.tensorflow.loops import custom
from harness.engines.tensorflow.reference.update import times_gradient
from tests.engines.tensorflow.own_nested import WORDS

KINDS = 9
"""Of words, in `own_nested.tagged`."""


def tagger() -> keras.Model:
    """It looks words up, drops some of what it has found, and adds to the loss."""
    return _tagger(keras.layers.Dropout(0.3, seed=3))


def plain_tagger() -> keras.Model:
    """The same without a layer that writes a variable."""
    return _tagger()


def normalised_tagger() -> keras.Model:
    """Each part has statistics of its own, and moves their averages."""
    return _tagger(keras.layers.BatchNormalization(momentum=0.9))


def synchronised_tagger() -> keras.Model:
    """Each part has statistics of all replicas' parts of its number."""
    return _tagger(keras.layers.BatchNormalization(momentum=0.9, synchronized=True))


def tagger_without_a_part() -> keras.Model:
    """The gradients of each replica's first part do not reach the sum; its loss is right."""
    accumulated = custom.accumulated

    def wrong(gradients_of: Any, parts: int) -> Any:
        called = itertools.count()

        def of_part(x: Any, y: Any) -> tuple[Any, list[Any]]:
            loss, gradients = gradients_of(x, y)
            counts = 1.0 if next(called) % parts else 0.0
            return loss, [times_gradient(gradient, counts) for gradient in gradients]

        return accumulated(of_part, parts)

    custom.accumulated = wrong
    return tagger()


def tagger_that_adds_for_each_part() -> keras.Model:
    """What the model adds to its loss counts once for each part."""
    share_gradients = custom.share_gradients
    custom.share_gradients = lambda training, model, optimizer, _: share_gradients(training, model, optimizer)
    return tagger()


def _tagger(*layers: keras.Layer) -> keras.Model:
    looked_up = keras.layers.Embedding(KINDS, 8)
    hidden = keras.layers.Dense(16, "relu", kernel_regularizer=keras.regularizers.L2(0.1))
    return keras.Sequential(
        [keras.Input((WORDS,), dtype="int32"), looked_up, *layers, hidden, keras.layers.Dense(KINDS)]
    )
