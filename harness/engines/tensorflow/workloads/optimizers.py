"""Optimizers by name; a compiled user model brings its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.engines._keras.optimizers import BUILT
from harness.errors import not_one_of

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class _Optimizer:
    summary: str
    build: "Callable[[], keras.optimizers.Optimizer]"


_BY_NAME = {
    "adam": _Optimizer("Adam, learning rate 0.001; two slots a weight", BUILT["adam"]),
    "sgd": _Optimizer("gradient descent, learning rate 0.01; no slots", BUILT["sgd"]),
    "momentum": _Optimizer(
        "gradient descent with momentum 0.9, learning rate 0.01; one slot a weight", BUILT["momentum"]
    ),
}

OPTIMIZERS: Mapping[str, str] = MappingProxyType({name: item.summary for name, item in _BY_NAME.items()})
"""Name to summary, without importing TensorFlow."""


def optimizer_of(model: "keras.Model", name: str) -> "keras.optimizers.Optimizer":
    """A fresh, unbuilt optimizer: as the user compiled `model`, else the one called `name`.

    The compiled one is taken by its configuration, without its slots or step count, and never
    wrapped in a LossScaleOptimizer: scaling follows the cell's precision and is the caller's.
    Raises UsageError for an unknown `name`.
    """
    import keras

    if name not in _BY_NAME:
        raise not_one_of("optimizer", name, _BY_NAME)
    if not model.compiled or model.optimizer is None:
        return _BY_NAME[name].build()
    own = model.optimizer
    if isinstance(own, keras.optimizers.LossScaleOptimizer):
        own = own.inner_optimizer
    config, rate = own.get_config(), own._learning_rate
    if "learning_rate" in config and isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        config["learning_rate"] = rate  # a class of the user's own would have to be registered to be found by its name
    return type(own).from_config(config)
