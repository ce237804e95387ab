"""Models by name, as Keras layers: those that the engine `tensorflow` trains."""

import importlib
from typing import TYPE_CHECKING

from harness.trial.same_work.architectures import architectures

if TYPE_CHECKING:
    import keras


def model_of(name: str, classes: int) -> "keras.Model":
    """A fresh, uncompiled one that gives logits."""
    module = importlib.import_module(f"harness.engines._keras.{name}")
    model: keras.Model = module.build(architectures()[name].input_shape, classes)
    return model
