"""Keras' optimizers, with the constants that all engines have."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras


def _adam() -> "keras.optimizers.Optimizer":
    import keras

    return keras.optimizers.Adam(1e-3)


def _sgd() -> "keras.optimizers.Optimizer":
    import keras

    return keras.optimizers.SGD(0.01)


def _momentum() -> "keras.optimizers.Optimizer":
    import keras

    return keras.optimizers.SGD(0.01, momentum=0.9)


BUILT: "Mapping[str, Callable[[], keras.optimizers.Optimizer]]" = MappingProxyType(
    {"adam": _adam, "sgd": _sgd, "momentum": _momentum}
)
"""By name: what makes a fresh, unbuilt one."""
