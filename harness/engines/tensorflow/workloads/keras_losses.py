"""What Keras' losses are made of, and which of them take what."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

MEANS = (
    "mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error",
    "huber", "log_cosh", "binary_crossentropy", "binary_focal_crossentropy", "hinge", "squared_hinge", "poisson",
)  # fmt: skip
"""Keras' losses of numbers, each of which is a mean over the last axis."""


def unreduced(compiled: Any) -> Callable[..., Any]:
    """What a loss computes, one value an example or a place of it, before its reduction."""
    import keras

    found: Any = keras.losses.get(compiled)
    # Loss.call is what a Loss computes before its reduction; the reduction belongs to the step.
    computes: Callable[..., Any] = found.call if isinstance(found, keras.losses.Loss) else found
    return computes


def is_of_keras(loss: Callable[..., Any]) -> bool:
    """Whether a loss is Keras' own."""
    return str(getattr(loss, "__module__", "")).partition(".")[0] == "keras"


def is_mean_of_last_axis(loss: Callable[..., Any]) -> bool:
    """Whether `loss` is one of Keras' that compare each number with its target: a last axis of one changes nothing."""
    function = getattr(getattr(loss, "__self__", None), "fn", loss)
    return is_of_keras(loss) and getattr(function, "__name__", "") in MEANS


def wants_one_hot(loss: Callable[..., Any]) -> bool:
    """Whether `loss` is one of Keras' categorical losses, which compare with a distribution."""
    from keras import losses

    functions = (losses.categorical_crossentropy, losses.categorical_focal_crossentropy, losses.categorical_hinge)
    classes = (losses.CategoricalCrossentropy, losses.CategoricalFocalCrossentropy, losses.CategoricalHinge)
    return loss in functions or isinstance(getattr(loss, "__self__", None), classes)


def ends_in_softmax(model: "keras.Model") -> bool:
    """Whether a model gives probabilities."""
    import keras

    layer: Any = model
    while isinstance(layer, keras.Model) and layer.layers:
        layer = layer.layers[-1]
    return isinstance(layer, keras.layers.Softmax) or getattr(layer, "activation", None) is keras.activations.softmax
