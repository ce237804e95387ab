"""The loss of a model whose output masks some of its places, or whose examples count differently: as Keras has it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.structures import Weighted
from harness.engines.tensorflow.training import part_of_mean
from harness.engines.tensorflow.workloads import loss_of
from harness.errors import Unsupported, UsageError
from tests.engines.tensorflow.workloads.losses import LABELS, LOGITS, expected_cross_entropy, softmax


def masked(values: Any, mask: Any) -> Any:
    """Predictions as a layer gives them that masks some of their places."""
    import tensorflow as tf

    tensor = tf.constant(values)
    tensor._keras_mask = tf.constant(mask)
    return tensor


@pytest.mark.parametrize("own", [False, True])
def test_places_that_the_output_masks_are_left_out_of_the_mean_by_every_loop(tf: Any, own: bool) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((2, 4)), keras.layers.Dense(3)])
    if own:
        model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    labels, logits = np.stack([LABELS, LABELS[::-1]]), np.stack([LOGITS, LOGITS])
    mask = np.array([[True, False], [True, True]])
    each = np.stack([expected_cross_entropy(), -np.log(softmax(LOGITS)[np.arange(2), LABELS[::-1]])])
    of_each = loss_of(model)
    assert float(np.mean(of_each(labels, masked(logits, mask)))) == pytest.approx(each[mask].mean(), rel=1e-5)
    by_fit: Any = keras.losses.get(of_each)
    assert float(by_fit(labels, masked(logits, mask), None)) == pytest.approx(each[mask].mean(), rel=1e-5)


def test_a_mask_of_places_says_nothing_of_a_loss_that_is_one_an_example(tf: Any) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((2, 4)), keras.layers.Dense(3)])
    model.compile(loss=lambda _, y_pred: keras.ops.mean(y_pred, axis=(1, 2)))
    logits = np.stack([LOGITS, 2 * LOGITS])
    got = loss_of(model)(LABELS, masked(logits, [[True, False], [True, True]]))
    np.testing.assert_allclose(got, logits.mean(axis=(1, 2)), rtol=1e-6)


def test_a_step_that_is_written_for_the_whole_batch_has_no_masked_output(tf: Any) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    with pytest.raises(Unsupported, match="masks its output: each replica takes the mean of what its own share"):
        loss_of(model, by_share=False)(LABELS, masked(LOGITS, [True, False]))


def test_a_masked_output_has_the_loss_that_keras_gives_it_by_itself_in_fit_and_in_a_loop_of_its_own(tf: Any) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((2, 4)), keras.layers.Masking(), keras.layers.Dense(3)])
    x, labels = np.ones((3, 2, 4), np.float32), np.array([[2, 0], [1, 1], [0, 2]], np.int32)
    x[0, 1] = x[2] = 0
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    by_keras = model.evaluate(x, labels, verbose=0)
    of_each = loss_of(model)
    assert float(np.mean(of_each(labels, model(x)))) == pytest.approx(by_keras, rel=1e-5)
    model.compile(loss=of_each)
    assert model.evaluate(x, labels, verbose=0) == pytest.approx(by_keras, rel=1e-5)


def part(of_each: Any, y: Any, outputs: Any) -> float:
    """What a replica that has all of a batch adds to the mean loss."""
    of: Any = SimpleNamespace(loss=of_each, cell=SimpleNamespace(global_batch_size=len(y.weights)))
    return float(part_of_mean(of, y, outputs))


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_an_example_counts_as_much_as_its_weight_says_as_it_does_to_keras(tf: Any, shape: tuple[int, ...]) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    x, labels, weights = np.ones((2, 4), np.float32), LABELS, np.array([0.5, 3], np.float64).reshape(shape)
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    by_keras = model.evaluate(x, labels, sample_weight=weights, verbose=0)
    assert by_keras != pytest.approx(model.evaluate(x, labels, verbose=0), rel=1e-2)
    of_each = loss_of(model)
    assert part(of_each, Weighted(labels, weights), model(x)) == pytest.approx(by_keras, rel=1e-5)
    model.compile(loss=of_each)
    assert model.evaluate(x, labels, sample_weight=weights, verbose=0) == pytest.approx(by_keras, rel=1e-5)


def test_an_example_some_of_whose_places_are_masked_counts_by_its_weight_in_every_loop(tf: Any) -> None:  # noqa: ARG001
    import keras

    of_each = loss_of(keras.Sequential([keras.Input((2, 4)), keras.layers.Dense(3)]))
    labels, outputs = np.stack([LABELS, LABELS]), masked(np.stack([LOGITS, LOGITS]), [[True, False], [True, True]])
    weights = np.array([0.5, 3], np.float32)
    by_loop = part(of_each, Weighted(labels, weights), outputs)
    assert by_loop == pytest.approx(float(np.mean(of_each(labels, outputs) * weights)), rel=1e-5)
    assert float(keras.losses.get(of_each)(labels, outputs, weights)) == pytest.approx(by_loop, rel=1e-5)


@pytest.mark.parametrize("masks", [True, False])
def test_each_place_counts_as_much_as_its_weight_says_as_it_does_to_keras(tf: Any, masks: bool) -> None:  # noqa: ARG001
    import keras

    between = keras.layers.Masking() if masks else keras.layers.Activation("relu")
    model = keras.Sequential([keras.Input((2, 4)), between, keras.layers.Dense(3)])
    x, labels = np.ones((3, 2, 4), np.float32), np.array([[2, 0], [1, 1], [0, 2]], np.int32)
    x[0, 1] = 0
    weights = np.array([[0.5, 3], [0, 1], [2, 0.25]], np.float64)
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    by_keras = model.evaluate(x, labels, sample_weight=weights, verbose=0)
    of_each = loss_of(model)
    assert part(of_each, Weighted(labels, weights), model(x)) == pytest.approx(by_keras, rel=1e-5)
    model.compile(loss=of_each)
    assert model.evaluate(x, labels, sample_weight=weights, verbose=0) == pytest.approx(by_keras, rel=1e-5)


def of_two_outputs() -> Any:
    """A model and a batch for it."""
    import keras

    given = keras.Input((4,))
    outputs = {"few": keras.layers.Dense(1, name="few")(given), "many": keras.layers.Dense(3, name="many")(given)}
    model = keras.Model(given, outputs)
    losses = {"few": "mse", "many": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile(loss=losses, loss_weights={"few": 2.0, "many": 0.5})
    return model, np.eye(2, 4, dtype=np.float32), {"few": np.array([1.0, 5.0], np.float32), "many": LABELS}


@pytest.mark.parametrize(
    "weights",
    [
        np.array([0.5, 3], np.float32),
        {"few": np.array([0.5, 3], np.float32), "many": np.array([[7], [0]], np.float32)},
    ],
)
def test_each_output_counts_as_much_as_its_weights_say_as_it_does_to_keras(tf: Any, weights: Any) -> None:  # noqa: ARG001
    model, x, targets = of_two_outputs()
    by_keras, *_ = model.evaluate(x, targets, sample_weight=weights, verbose=0)
    of_each: Any = loss_of(model)
    assert np.mean(of_each.weighted(targets, model(x), weights)) == pytest.approx(by_keras, rel=1e-5)


def test_weights_of_other_outputs_than_there_are_are_refused(tf: Any) -> None:  # noqa: ARG001
    model, x, targets = of_two_outputs()
    weights = {"few": np.ones(2), "much": np.ones(2)}
    said = r"gives 'few', 'many', and weights are 'few', 'much', expected those of each output, in the same structure"
    with pytest.raises(UsageError, match=said):
        loss_of(model).weighted(targets, model(x), weights)


def test_weights_of_places_that_a_loss_does_not_have_are_refused(tf: Any) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile(loss="mse")
    targets = np.ones((2, 3), np.float32)
    with pytest.raises(UsageError, match=r"has weights of the shape \(3,\) and a loss of the shape \(\), expected"):
        loss_of(model).weighted(targets, model(np.ones((2, 4), np.float32)), targets)
