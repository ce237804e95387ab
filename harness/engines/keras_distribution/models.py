"""Models by name, as Keras layers: those that the engine `tensorflow` trains."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.trial.same_work.architectures import architectures

if TYPE_CHECKING:
    import keras


def model_of(name: str, classes: int) -> "keras.Model":
    """A fresh, uncompiled one that gives logits; its weights are to be assigned."""
    module = importlib.import_module(f"harness.engines._keras.{name}")
    with _undrawn():
        model: keras.Model = module.build(architectures()[name].input_shape, classes)
    return model


@contextlib.contextmanager
def _undrawn() -> Iterator[None]:
    """While entered, weights that would be random are zeros. Drawing them compiles a program for each shape, almost a
    second each, and processes that draw different ones cannot lay them over all devices."""
    import keras
    import numpy as np

    def zeros(_: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
        return np.zeros(shape, dtype)

    drawing: tuple[Any, ...] = (keras.initializers.VarianceScaling, keras.initializers.RandomNormal)
    own = [kind.__call__ for kind in drawing]
    for kind in drawing:
        kind.__call__ = zeros
    try:
        yield
    finally:
        for kind, call in zip(drawing, own, strict=True):
            kind.__call__ = call
