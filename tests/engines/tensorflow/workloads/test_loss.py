"""The loss of a model, one number an example."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.workloads import check_targets, classes_of, loss_of
from harness.errors import Unsupported, UsageError
from harness.trial.examples import late_labels
from tests.engines.tensorflow.workloads.losses import LABELS, LOGITS, expected_cross_entropy, softmax


@pytest.fixture
def model_with(tf: Any) -> Callable[..., Any]:  # noqa: ARG001 - sets TensorFlow up
    """A function that makes a three-class model with the given last layers."""
    import keras

    def make(*last: Any) -> Any:
        return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), *last])

    return make


def test_logits_get_cross_entropy_from_logits(model_with: Callable[..., Any]) -> None:
    np.testing.assert_allclose(loss_of(model_with())(LABELS, LOGITS), expected_cross_entropy(), rtol=1e-5)


def test_probabilities_get_cross_entropy_from_probabilities(model_with: Callable[..., Any]) -> None:
    import keras

    for last in (keras.layers.Softmax(), keras.layers.Activation("softmax"), keras.layers.Dense(3, "softmax")):
        got = loss_of(model_with(last))(LABELS, softmax(LOGITS))
        np.testing.assert_allclose(got, expected_cross_entropy(), rtol=1e-5)


def test_a_softmax_inside_a_nested_model_is_seen(model_with: Callable[..., Any]) -> None:
    import keras

    outer = keras.Sequential([keras.Input((4,)), model_with(keras.layers.Softmax())])
    np.testing.assert_allclose(loss_of(outer)(LABELS, softmax(LOGITS)), expected_cross_entropy(), rtol=1e-5)


@pytest.mark.parametrize("as_object", [False, True])
def test_a_compiled_categorical_loss_takes_the_integer_labels(model_with: Callable[..., Any], as_object: bool) -> None:
    import keras

    model = model_with(keras.layers.Softmax())
    model.compile(loss=keras.losses.CategoricalCrossentropy() if as_object else "categorical_crossentropy")
    np.testing.assert_allclose(loss_of(model)(LABELS, softmax(LOGITS)), expected_cross_entropy(), rtol=1e-5)


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean"])
def test_a_compiled_loss_keeps_its_settings_and_leaves_the_mean_to_the_step(
    model_with: Callable[..., Any], reduction: str
) -> None:
    import keras

    model = model_with()
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction))
    np.testing.assert_allclose(loss_of(model)(LABELS, LOGITS), expected_cross_entropy(), rtol=1e-5)


@pytest.mark.parametrize("reduction", ["sum", "none", None, "mean_with_sample_weight"])
def test_a_loss_that_keras_would_not_take_the_mean_of_is_unsupported_and_the_reason_says_what_to_do(
    model_with: Callable[..., Any], reduction: str | None
) -> None:
    import keras

    says = rf"^model: '.*' is compiled with a loss of reduction={reduction!r}, .*; leave the reduction out"
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    for model, compiled in ((model_with(), loss), (two_outputs(), {"rating": "mse", "liked": loss})):
        model.compile(loss=compiled)
        with pytest.raises(Unsupported, match=says):
            loss_of(model)


def test_a_train_step_of_a_models_own_may_reduce_as_it_likes(tf: Any) -> None:  # noqa: ARG001
    import keras

    class Own(keras.Sequential):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            return super().train_step(data)

    model = Own([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum"))
    np.testing.assert_allclose(loss_of(model)(LABELS, LOGITS), expected_cross_entropy(), rtol=1e-5)


@pytest.mark.parametrize("weight", [3.0, [3.0], {"only": 3.0}])
def test_the_loss_of_one_output_counts_as_much_as_it_was_compiled_to(tf: Any, weight: Any) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="only")])
    model.compile(loss="mse", loss_weights=weight)
    x, y = np.ones((2, 4), np.float32), np.ones((2, 3), np.float32)
    theirs = model.evaluate(x, y, verbose=0)
    assert float(np.mean(loss_of(model)(y, model(x)))) == pytest.approx(theirs, rel=1e-5)
    weights = np.array([0.5, 2.0], np.float32)
    theirs = model.evaluate(x, y, sample_weight=weights, verbose=0)
    assert float(np.mean(loss_of(model).weighted(y, model(x), weights))) == pytest.approx(theirs, rel=1e-5)


def test_several_weights_of_one_loss_are_bad_usage(model_with: Callable[..., Any]) -> None:
    model = model_with()
    model.compile(loss="mse", loss_weights=[1.0, 2.0])
    with pytest.raises(UsageError, match=r"is compiled with 2 loss_weights and one loss, expected one$"):
        loss_of(model)


def test_a_users_own_function_is_averaged_over_what_is_not_the_batch(model_with: Callable[..., Any]) -> None:
    model = model_with()
    model.compile(loss=lambda _, y_pred: y_pred**2)
    np.testing.assert_allclose(loss_of(model)(LABELS, LOGITS), (LOGITS**2).mean(axis=1), rtol=1e-6)


def test_a_binary_loss_compares_each_example_with_its_own_label(tf: Any) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, "sigmoid")])
    model.compile(loss="binary_crossentropy")
    got = loss_of(model)(np.array([1, 0], np.int32), np.array([[0.9], [0.4]], np.float32))
    np.testing.assert_allclose(got, [-np.log(0.9), -np.log(0.6)], rtol=1e-5)


def test_half_precision_outputs_give_a_float32_loss(tf: Any, model_with: Callable[..., Any]) -> None:
    got = loss_of(model_with())(LABELS, tf.cast(LOGITS, tf.bfloat16))
    assert (got.dtype, got.shape) == (tf.float32, (2,))


def test_one_output_without_a_loss_is_refused(tf: Any) -> None:  # noqa: ARG001
    import keras

    with pytest.raises(UsageError, match=r"^model: 'lonely' has one output and no loss, expected a compiled one"):
        loss_of(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)], name="lonely"))


def test_several_losses_are_unsupported(model_with: Callable[..., Any]) -> None:
    model = model_with()
    model.compile(loss=["mse", "mae"])
    with pytest.raises(Unsupported, match=r"^model: '.*' is compiled with 2 losses, and a trial trains by one$"):
        loss_of(model)


OF_THE_BATCH = {
    "a number": lambda _, y_pred: y_pred[0, 0] - y_pred[1, 0],
    "one row": lambda _, y_pred: y_pred[:1],
    "its axis kept": lambda _, y_pred: (y_pred[:1] - y_pred[1:2])[:, 0],
    "of an unknown rank": lambda _, y_pred: _hidden(y_pred[0, 0]),
    "a vector of an unknown rank": lambda _, y_pred: _hidden(y_pred[:1]),
}


def _hidden(tensor: Any) -> Any:
    """The tensor, of whose shape a graph knows nothing."""
    import tensorflow as tf

    return tf.numpy_function(lambda value: value, [tensor], tensor.dtype)


@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.parametrize("loss", OF_THE_BATCH.values(), ids=OF_THE_BATCH.keys())
def test_a_loss_of_one_value_for_the_batch_is_refused_with_what_it_must_give(
    tf: Any, model_with: Callable[..., Any], loss: Callable[..., Any], batch: int | None
) -> None:
    model = model_with()
    model.compile(loss=loss)
    step = tf.function(loss_of(model), input_signature=[tf.TensorSpec([batch], tf.int32), tf.TensorSpec([batch, 3])])
    with pytest.raises((UsageError, tf.errors.InvalidArgumentError), match=r"one an example, of the shape \[batch\]"):
        step(LABELS, LOGITS)


def test_a_loss_of_whose_shape_nothing_is_known_counts_where_it_is_one_an_example(
    tf: Any, model_with: Callable[..., Any]
) -> None:
    model = model_with()
    model.compile(loss=lambda _, y_pred: _hidden(y_pred**2))
    step = tf.function(loss_of(model), input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 3])])
    np.testing.assert_allclose(step(LABELS, LOGITS), (LOGITS**2).mean(axis=1), rtol=1e-6)


def test_a_loss_of_keras_own_gets_no_operation_that_checks_it(tf: Any, model_with: Callable[..., Any]) -> None:
    model = model_with()
    model.compile(loss="mse")
    step = tf.function(loss_of(model), input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 3])])
    operations = step.get_concrete_function().graph.get_operations()
    assert not [one.name for one in operations if one.type in ("Assert", "If", "StatelessIf")]


def test_the_loss_of_an_example_with_several_classes_is_their_mean(tf: Any) -> None:  # noqa: ARG001
    import keras

    model = keras.Sequential([keras.Input((2, 4)), keras.layers.Dense(3)])
    got = loss_of(model)(np.stack([LABELS, LABELS[::-1]]), np.stack([LOGITS, LOGITS]))
    each = [expected_cross_entropy(), -np.log(softmax(LOGITS)[np.arange(2), LABELS[::-1]])]
    np.testing.assert_allclose(got, np.mean(each, axis=1), rtol=1e-5)


def test_targets_of_the_predictions_own_shape_are_taken_as_they_are(model_with: Callable[..., Any]) -> None:
    import keras

    model = model_with(keras.layers.Softmax())
    model.compile(loss="categorical_crossentropy")
    shares = np.array([[0.2, 0.3, 0.5], [1, 0, 0]], np.float32)
    np.testing.assert_allclose(
        loss_of(model)(shares, softmax(LOGITS)), -(shares * np.log(softmax(LOGITS))).sum(axis=1), rtol=1e-5
    )
    one = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    one.compile(loss="mse")
    targets = np.array([[1.0], [3.0]], np.float32)
    np.testing.assert_allclose(loss_of(one)(targets, np.zeros((2, 1), np.float32)), [1.0, 9.0])


@pytest.mark.parametrize("loss", [None, "mse"])
@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (LABELS / 2, r"has no loss of its own, and a target is float64 of the shape \(\), expected a compiled model"),
        (LABELS[:, None], r"a target is int32 of the shape \(1,\), .* integers of the shape \(\)$"),
        (LABELS + 1, r"has 3 outputs, and targets are from 1 to 3, expected classes from 0 to 2$"),
        (LABELS - 1, "targets are from -1 to 1, expected classes from 0 to 2$"),
        (LABELS, None),
    ],
)
def test_without_a_loss_of_its_own_a_model_wants_classes(
    model_with: Callable[..., Any], targets: Any, message: str | None, loss: str | None
) -> None:
    model = model_with()
    if loss is not None:
        model.compile(loss=loss)
    if message is None or loss is not None:
        check_targets(model, targets)
        return
    with pytest.raises(UsageError, match=message):
        check_targets(model, targets)


@pytest.mark.parametrize(("loss", "outputs"), [("categorical_crossentropy", 3), ("binary_crossentropy", 1), ("mse", 1)])
def test_it_is_the_same_as_fit_calls_it_which_makes_labels_floats_of_the_outputs_rank(
    model_with: Callable[..., Any], loss: str, outputs: int
) -> None:
    import keras

    model = model_with(keras.layers.Dense(outputs, "softmax" if outputs > 1 else "sigmoid"))
    model.compile(loss=loss)
    x, labels = np.ones((2, 4), np.float32), np.array([1, 0], np.int32)
    of_each = loss_of(model)
    expected = float(np.mean(of_each(labels, model(x))))
    model.compile(loss=of_each)
    assert model.evaluate(x, labels, verbose=0) == pytest.approx(expected, rel=1e-5)


def test_a_loss_that_gives_nothing_is_told_so_in_words(model_with: Callable[..., Any]) -> None:
    model = model_with()
    model.compile(loss=lambda _, __: None)
    with pytest.raises(UsageError, match="its loss gives None, expected one value an example; return them"):
        loss_of(model)(LABELS, LOGITS)


RATINGS, LIKED = np.array([1.0, 3.0], np.float32), np.array([1, 0], np.int32)
GIVEN = {"liked": np.array([[0.9], [0.4]], np.float32), "rating": np.array([[2.0], [3.5]], np.float32)}
EXPECTED = {"rating": np.array([1.0, 0.25]), "liked": np.array([-np.log(0.9), -np.log(0.6)])}


def two_outputs(listed: bool = False, **compiled: Any) -> Any:
    """A model that gives a rating and whether it is liked, in a dict or in a list with the rating first."""
    import keras

    x = keras.Input((4,))
    rating, liked = keras.layers.Dense(1, name="rating")(x), keras.layers.Dense(1, "sigmoid", name="liked")(x)
    model = keras.Model(x, [rating, liked] if listed else {"rating": rating, "liked": liked}, name="two")
    if compiled:
        model.compile(**compiled)
    return model


BY_NAME = {"rating": "mse", "liked": "binary_crossentropy"}


@pytest.mark.parametrize(
    ("compiled", "weights"),
    [
        ({"loss": BY_NAME}, {"rating": 1, "liked": 1}),
        ({"loss": BY_NAME, "loss_weights": {"liked": 0.5}}, {"rating": 1, "liked": 0.5}),
        ({"loss": BY_NAME, "loss_weights": {"rating": 2.0, "liked": 0.5}}, {"rating": 2, "liked": 0.5}),
        ({"loss": {"rating": "mse"}}, {"rating": 1, "liked": 0}),
        ({"loss": {"rating": "mse", "liked": None}}, {"rating": 1, "liked": 0}),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_the_loss_of_several_outputs_is_the_sum_of_each_ones_by_its_weight(
    tf: Any,  # noqa: ARG001
    compiled: dict[str, Any],
    weights: dict[str, float],
    listed: bool,
) -> None:
    given = [GIVEN["rating"], GIVEN["liked"]] if listed else GIVEN
    expected = sum(weight * EXPECTED[name] for name, weight in weights.items())
    of_each = loss_of(two_outputs(listed, **compiled))
    for targets in ({"rating": RATINGS, "liked": LIKED}, (RATINGS, LIKED)):
        if listed or isinstance(targets, dict):
            np.testing.assert_allclose(of_each(targets, given), expected, rtol=1e-5)


def test_losses_in_a_list_are_those_of_the_outputs_in_their_order_and_one_is_that_of_all(tf: Any) -> None:  # noqa: ARG001
    given, targets = [GIVEN["rating"], GIVEN["liked"]], (RATINGS, LIKED)
    in_order = loss_of(two_outputs(listed=True, loss=["mse", "binary_crossentropy"], loss_weights=[1.0, 3.0]))
    np.testing.assert_allclose(in_order(targets, given), EXPECTED["rating"] + 3 * EXPECTED["liked"], rtol=1e-5)
    of_all = loss_of(two_outputs(listed=True, loss="mse"))
    np.testing.assert_allclose(of_all(targets, given), EXPECTED["rating"] + [0.01, 0.16], rtol=1e-5)


def test_the_losses_of_several_outputs_are_the_same_as_fit_calls_them(tf: Any) -> None:  # noqa: ARG001
    model = two_outputs(loss=BY_NAME, loss_weights={"rating": 1.0, "liked": 0.5})
    x, targets = np.ones((2, 4), np.float32), {"rating": RATINGS, "liked": LIKED}
    theirs = model.evaluate(x, targets, verbose=0)[0]
    of_each = loss_of(model)
    assert float(np.mean(of_each(targets, model(x)))) == pytest.approx(theirs, rel=1e-5)
    model.compile(loss=of_each.each)  # type: ignore[attr-defined]
    assert model.evaluate(x, targets, verbose=0)[0] == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize(
    ("compiled", "message"),
    [
        (
            {},
            r"^model: 'two' has its outputs in a structure \(liked, rating\) and no loss, expected a compiled",
        ),
        (
            {"loss": {"rating": "mse", "other": "mse"}},
            "compiled with 2 entries of loss, and its outputs are liked, rat",
        ),
        ({"loss": ["mse"] * 3}, "compiled with 3 entries of loss, and its outputs are liked, rating: expected one for"),
    ],
)
def test_losses_that_fit_no_output_are_bad_usage(tf: Any, compiled: dict[str, Any], message: str) -> None:  # noqa: ARG001
    with pytest.raises(UsageError, match=message):
        loss_of(two_outputs(**compiled))


@pytest.mark.parametrize(
    ("listed", "targets", "says"),
    [
        (False, {"rating": RATINGS}, "a target is 'rating', expected one for each output"),
        (False, {"rating": RATINGS, "likes": LIKED}, "a target is 'likes', 'rating', expected"),
        (False, (RATINGS, LIKED), "model: 'two' gives 'liked', 'rating', and a target is '0', '1', expected"),
        (True, {"rating": RATINGS, "likes": LIKED}, "model: 'two' gives '0', '1', and a target is"),
        (False, RATINGS, "a target is one tensor, expected"),
        (False, {"rating": RATINGS, "liked": LIKED}, None),
        (True, {"rating": RATINGS, "liked": LIKED}, None),
        (True, (RATINGS, LIKED), None),
    ],
)
def test_targets_are_in_the_structure_of_the_outputs_or_in_a_dict_by_their_names(
    tf: Any,  # noqa: ARG001
    listed: bool,
    targets: Any,
    says: str | None,
) -> None:
    model = two_outputs(listed, loss="mse")
    if says is None:
        check_targets(model, targets)
        return
    with pytest.raises(UsageError, match=says):
        check_targets(model, targets)


def test_a_target_in_a_structure_is_none_of_a_model_with_one_output(model_with: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="gives one tensor, and a target is 'a', expected one for each output"):
        check_targets(model_with(), {"a": LABELS})


def test_each_of_several_targets_has_the_number_of_its_outputs_classes_where_it_is_a_class(tf: Any) -> None:  # noqa: ARG001
    import keras

    x = keras.Input((4,))
    outputs = {"kind": keras.layers.Dense(5)(x), "tags": keras.layers.Dense(3)(x), "liked": keras.layers.Dense(1)(x)}
    targets = {"kind": LABELS, "tags": np.zeros((2, 3), np.int32), "liked": LIKED}
    classes = classes_of(keras.Model(x, outputs), targets)
    assert classes == {"kind": 5, "tags": 0, "liked": 1}
    late = {name: late_labels(targets[name], classes[name]).tolist() for name in ("kind", "liked")}
    assert late == {"kind": [3, 1], "liked": [0, 1]}
    tags = np.array([[0, 1, 1], [1, 0, 0]], np.int32)
    assert late_labels(tags, 0).tolist() == tags[::-1].tolist(), (
        "several of which an example may have are those of others"
    )
