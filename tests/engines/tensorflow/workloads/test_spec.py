"""Random examples for a user's own model have its structure, its types, and values that it can take."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.workloads.spec import ExamplePart, spec_of

USERS, ITEMS, NUMBERS = ExamplePart((), "int32", 20), ExamplePart((), "int32", 30), ExamplePart((8,), "float32")
ZERO_OR_ONE = ExamplePart((1,), "float32", 2)


@pytest.fixture
def own_nested(tf: Any) -> Any:  # noqa: ARG001 - it imports Keras
    """Models of several inputs and outputs."""
    from tests.engines.tensorflow import own_nested

    return own_nested


def test_inputs_and_targets_have_the_models_structure_and_whole_numbers_are_rows_of_their_tables(
    own_nested: Any,
) -> None:
    inputs = {"user": USERS, "item": ITEMS, "features": NUMBERS}
    assert spec_of(own_nested.model()) == (inputs, {"rating": ZERO_OR_ONE, "liked": ZERO_OR_ONE})
    assert spec_of(own_nested.model_of_tuples()) == ((USERS, ITEMS, NUMBERS), (ZERO_OR_ONE, ZERO_OR_ONE))


def one_output(shape: tuple[int, ...], loss: Any) -> Any:
    import keras

    tokens = keras.Input((4,), dtype="int64")
    seen = keras.layers.Embedding(50, 6)(tokens)
    made = seen if len(shape) > 1 else keras.layers.GlobalAveragePooling1D()(seen)
    model = keras.Model(tokens, keras.layers.Dense(shape[-1])(made))
    if loss is not None:
        model.compile("sgd", loss)
    return model


@pytest.mark.parametrize(
    ("output", "loss", "target"),
    [
        ((7,), None, ExamplePart((), "int32", 7)),
        ((4, 7), None, ExamplePart((4,), "int32", 7)),
        ((7,), "sparse_categorical_crossentropy", ExamplePart((), "int32", 7)),
        ((7,), "categorical_crossentropy", ExamplePart((), "int32", 7)),
        ((7,), "mse", ExamplePart((7,), "float32", 2)),
        ((7,), "binary_crossentropy", ExamplePart((7,), "float32", 2)),
        ((1,), "binary_crossentropy", ZERO_OR_ONE),
        ((7,), lambda y_true, y_pred: (y_true, y_pred), ExamplePart((), "int32", 7)),
    ],
)
@pytest.mark.usefixtures("tf")
def test_a_target_is_what_the_loss_takes(output: tuple[int, ...], loss: Any, target: ExamplePart) -> None:
    assert spec_of(one_output(output, loss)) == (ExamplePart((4,), "int64", 50), target)


def test_a_batch_for_an_own_model_is_drawn_from_its_seed(own_nested: Any) -> None:
    source = load_source("synthetic").for_model(own_nested.model())
    (x, y), again = (source.batch((), 0, 200, 3, None) for _ in range(2))
    assert (x["user"].dtype, x["user"].shape, x["user"].min(), x["user"].max()) == (np.int32, (200,), 0, 19)
    assert x["features"].shape == (200, 8)
    assert abs(x["features"].mean()) < 0.2
    assert set(y["liked"].ravel()) == {0.0, 1.0}
    np.testing.assert_array_equal(x["item"], again[0]["item"])
    assert source.examples(Path()).element_spec[0]["user"].dtype == np.int32
