"""TensorFlow's locked kernels make the updates of Keras' optimizers."""

from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.server_state import FusedOptimizer, ShardedVariable, StatelessModel
from harness.errors import Unsupported


def place(variable: Any, _: ShardedVariable | None) -> ShardedVariable:
    import tensorflow as tf

    return ShardedVariable(variable.path, (tf.Variable(variable.numpy(), trainable=False),))


def with_kernels(optimizer: Any, dtype: str) -> tuple[Any, FusedOptimizer]:
    """A small model with weights of a type, and `optimizer` as kernels have it."""
    import keras

    model = keras.Sequential([keras.Input((4,), dtype=dtype), keras.layers.Dense(3, dtype=dtype)])
    optimizer.build(model.trainable_variables)
    return model, FusedOptimizer(place, optimizer, StatelessModel(place, model))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("kind", "options"), [("Adam", {"epsilon": 1e-3}), ("SGD", {}), ("SGD", {"momentum": 0.5, "nesterov": True})]
)
def test_weights_of_every_type_are_updated_as_keras_updates_them(
    tf: Any, dtype: str, kind: str, options: dict[str, Any]
) -> None:
    import keras

    model, fused = with_kernels(keras.optimizers.get({"class_name": kind, "config": options}), dtype)
    for step in (1, 2):
        gradients = [tf.constant(np.full(weight.shape, 0.1 * step), dtype) for weight in model.trainable_variables]
        fused.apply(gradients)
        fused.configured.apply(gradients, model.trainable_variables)
    tolerance = {"float64": 1e-12, "float32": 1e-6}.get(dtype, 2e-2)
    for ours, weight in zip(fused._weights, model.trainable_variables, strict=True):
        values, expected = (of.numpy().astype(np.float64) for of in (ours, weight))
        np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance / 10)
    assert int(fused.iterations.numpy()) == 2


def test_a_learning_rate_that_is_a_function_has_no_kernel(tf: Any) -> None:  # noqa: ARG001
    import keras

    with pytest.raises(Unsupported, match=r"^optimizer: there is no locked kernel for SGD as it is configured"):
        with_kernels(keras.optimizers.SGD(lambda: 0.25), "float32")
