"""A model whose gradients are known: one step of it shows what becomes of what each replica sends."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.protocol.state import Array


def summed(sent: "Sequence[Array]", layouts: Sequence[Any]) -> list[Any]:
    """The sum along the first dimension of each of `sent`, [own replicas, ...], as an update takes it: JAX's arrays.

    Weights are zeros in the layouts of the trained model's; an example's loss is its products with them, so that the
    gradients of the sum over a batch are the sums, and an update at a rate of -1 puts them on exactly: to turn signs
    round afterwards JAX would compile a program for each shape.
    """
    import keras
    import numpy as np
    from keras import ops

    class ReplicaProducts(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            pairs = zip(sent, layouts, strict=True)
            self.factors = [keras.Variable(np.zeros(one.shape[1:], np.float32), layout=of) for one, of in pairs]

        def call(self, examples: list[Any]) -> Any:
            pairs = zip(examples, self.factors, strict=True)
            products = (ops.reshape(one * factor, (ops.shape(one)[0], -1)) for one, factor in pairs)
            return sum(ops.sum(product, axis=1) for product in products)

    class Total(keras.losses.Loss):  # type: ignore[misc]
        def call(self, _wanted: Any, products: Any) -> Any:
            return products

    model = ReplicaProducts()
    model.compile(optimizer=keras.optimizers.SGD(-1.0), loss=Total(reduction="sum"))
    model.train_on_batch(list(sent), np.zeros(len(sent[0]), np.float32))
    return [factor.value for factor in model.factors]
