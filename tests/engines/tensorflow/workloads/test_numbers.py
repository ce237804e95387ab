"""Losses and targets of outputs that are numbers, and no classes."""

from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.workloads import classes_of, loss_for, loss_of, makes_its_loss
from harness.engines.tensorflow.workloads.keras_losses import MEANS
from harness.errors import Unsupported, UsageError
from harness.trial.examples import late_labels

GENERATOR = np.random.default_rng(3)
TARGETS, PREDICTIONS = (GENERATOR.uniform(0.05, 0.95, 7).astype(np.float32) for _ in range(2))


def model_of(*output: int, loss: Any = None, kind: Any = None) -> Any:
    """A functional model whose output, `price`, has this shape."""
    import keras

    x = keras.Input((4,))
    made = keras.layers.Dense(int(np.prod(output)))(x)
    model = (kind or keras.Model)(x, keras.layers.Reshape(output, name="price")(made) if output else made[:, 0])
    if loss is not None:
        model.compile("sgd", loss)
    return model


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize("name", MEANS)
def test_of_a_number_without_an_axis_the_losses_of_examples_have_the_mean_that_keras_computes(name: str) -> None:
    import keras

    loss = loss_of(model_of(loss=name))
    each = np.array(loss(TARGETS, PREDICTIONS))
    assert each.shape == (7,)
    assert float(each.mean()) == pytest.approx(float(keras.losses.get(name)(TARGETS, PREDICTIONS)), rel=1e-5)
    alone = [float(keras.losses.get(name)(TARGETS[k : k + 1], PREDICTIONS[k : k + 1])) for k in range(7)]
    np.testing.assert_allclose(each, alone, rtol=1e-4)
    np.testing.assert_allclose(loss(TARGETS[:, None], PREDICTIONS), each, rtol=1e-5)


@pytest.mark.parametrize("name", ["cosine_similarity", "kl_divergence"])
def test_a_loss_that_is_no_mean_of_numbers_is_refused_of_a_number_without_an_axis(tf: Any, name: str) -> None:  # noqa: ARG001
    with pytest.raises(UsageError, match="its loss gives one value for the whole batch, expected one an example"):
        loss_of(model_of(loss=name))(TARGETS, PREDICTIONS)


def test_a_number_without_an_axis_has_no_loss_of_its_own(tf: Any) -> None:  # noqa: ARG001
    with pytest.raises(UsageError, match="has one output and no loss, expected a compiled one"):
        loss_of(model_of())


@pytest.mark.parametrize(
    ("output", "targets", "classes", "late"),
    [
        ((3,), [[0, 1, 1], [1, 0, 0]], 0, [[1, 0, 0], [0, 1, 1]]),
        ((1,), [250_000, 310_000], 0, [310_000, 250_000]),
        ((1,), [[250_000], [310_000]], 0, [[310_000], [250_000]]),
        ((), [7, 9], 0, [9, 7]),
        ((1,), [-1, 1], 0, [1, -1]),
        ((1,), [1, 0], 1, [0, 1]),
        ((3,), [2, 0], 3, [0, 1]),
        ((2, 3), [[2, 0], [1, 1]], 3, [[0, 1], [2, 2]]),
        ((3,), [2, 3], 0, [3, 2]),
    ],
)
def test_whole_numbers_are_classes_only_where_they_can_be_those_of_the_output(
    tf: Any,  # noqa: ARG001
    output: tuple[int, ...],
    targets: Any,
    classes: int,
    late: Any,
) -> None:
    given = np.array(targets)
    assert classes_of(model_of(*output, loss="mse"), given) == classes
    assert late_labels(given, classes).tolist() == late


@pytest.mark.parametrize("loss", [["mse"], ("mse",), {"price": "mse"}])
def test_a_loss_in_a_list_or_dict_of_one_is_that_one(tf: Any, loss: Any) -> None:  # noqa: ARG001
    y, given = TARGETS[:6].reshape(2, 3), PREDICTIONS[:6].reshape(2, 3)
    np.testing.assert_allclose(loss_of(model_of(3, loss=loss))(y, given), ((y - given) ** 2).mean(axis=1), rtol=1e-5)


def test_a_loss_of_another_output_and_several_of_one_are_refused(tf: Any) -> None:  # noqa: ARG001
    with pytest.raises(UsageError, match=r"is compiled with a loss of 'prize', expected one of its output, 'price'$"):
        loss_of(model_of(3, loss={"prize": "mse"}))
    with pytest.raises(Unsupported, match="is compiled with 2 losses, and a trial trains by one"):
        loss_of(model_of(3, loss=["mse", "mae"]))


def test_what_its_own_step_makes_of_targets_is_not_asked_of_a_model_without_a_loss(tf: Any) -> None:  # noqa: ARG001
    import keras

    class Own(keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            return super().train_step(data)

    floats, classes = TARGETS[:2], np.array([1, 2])
    for targets in (floats, classes, {"a": floats, "b": floats}):
        compiled = model_of(3, kind=Own)
        compiled.compile("sgd")
        assert (makes_its_loss(compiled), loss_for(compiled, targets)) == (True, None)
        uncompiled = loss_for(model_of(3, kind=Own), targets)
        assert (uncompiled is None) is (targets is not classes)
    with_loss = model_of(3, loss="mse", kind=Own)
    assert (makes_its_loss(with_loss), makes_its_loss(model_of(3))) == (False, False)
    with pytest.raises(UsageError, match="a target is 'a', 'b', expected one for each"):
        loss_for(with_loss, {"a": floats, "b": floats})
