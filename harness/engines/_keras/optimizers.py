"""Keras' optimizers, with the constants that all engines have."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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
_SLOTS = {"momentum": ("_momentums", "momentums"), "velocity": ("_velocities",)}
"""Where Keras' optimizers keep the variables of a slot: Adam, then SGD."""


def slot_of(optimizer: Any, slot: str) -> list[Any]:
    """The variables of a slot of a built optimizer, one a trained weight in their order."""
    found = (getattr(optimizer, name, None) for name in _SLOTS[slot])
    return next(variables for variables in found if variables)
