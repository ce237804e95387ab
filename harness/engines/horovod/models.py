"""Keras' models as TensorFlow's cells train them, with the weights of the same work."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.training import begin_alike
from harness.engines.tensorflow.workloads import load_workload
from harness.trial.same_work.architectures import architectures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.protocol.state import Array


def built(name: str, seed: int, classes: int) -> Any:
    """The model of an architecture with the weights that `seed` gives every engine; statistics begin as Keras' do."""
    model = load_workload(name).build(architectures()[name].input_shape, classes)
    begin_alike(model, name, classes, seed)
    return model


def products(constants: "Sequence[Array]") -> Any:
    """A model whose gradients are known: for x [1, 1] those of its weights, which are zeros, are x times these."""
    return _products()(constants)


def mean_of_outputs(_y: Any, outputs: Any) -> Any:
    """The loss of `products`."""
    import tensorflow as tf

    return tf.reduce_mean(outputs)


@cache
def _products() -> Callable[["Sequence[Array]"], Any]:
    """The class, defined on demand because this module must import without Keras."""
    import keras
    import tensorflow as tf

    class Products(keras.Model):  # type: ignore[misc]
        """The sum of all weights times `constants` times x, [1, 1]."""

        def __init__(self, constants: "Sequence[Array]") -> None:
            super().__init__()
            self.constants = [tf.constant(constant, tf.float32) for constant in constants]
            self.factors = [self.add_weight(shape=c.shape, initializer="zeros") for c in constants]
            self.built = True

        def call(self, x: Any) -> Any:
            pairs = zip(self.factors, self.constants, strict=True)
            return tf.add_n([tf.reduce_sum(factor * (x * constant)) for factor, constant in pairs])[None, None]

    return Products
