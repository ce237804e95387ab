"""The models of the gate's matrix as a trial asks for them: `gate_case:MODEL__OPTIMIZER[__FAULT__early|late]`.

The name says all, since it is all that reaches the process of a trial. The first model that a process builds is the one
that is timed, and has the fault; those that come after it are what it is held against, and are right.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gate_models
import gate_own
from gate_faults import FAULTS, START, Planted

if TYPE_CHECKING:
    import keras

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"learning_rate": 0.05}),
    "momentum": ("SGD", {"learning_rate": 0.02, "momentum": 0.9}),
    "nesterov": ("SGD", {"learning_rate": 0.02, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {}),
    "amsgrad": ("Adam", {"amsgrad": True}),
    "adamw": ("AdamW", {}),
    "adamax": ("Adamax", {}),
    "nadam": ("Nadam", {}),
    "adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "adagrad": ("Adagrad", {"learning_rate": 0.01}),
    "adafactor": ("Adafactor", {}),
    "rmsprop": ("RMSprop", {}),
    "centred_rmsprop": ("RMSprop", {"centered": True, "momentum": 0.5}),
    "ftrl": ("Ftrl", {"learning_rate": 0.05}),
    "lion": ("Lion", {}),
    "lamb": ("Lamb", {}),
    "muon": ("Muon", {}),
    "schedule_free_adamw": ("ScheduleFreeAdamW", {}),
    "clip_value": ("SGD", {"learning_rate": 0.05, "clipvalue": 0.001}),
    "clip_norm": ("SGD", {"learning_rate": 0.05, "clipnorm": 0.01}),
    "clip_global_norm": ("Adam", {"global_clipnorm": 0.1}),
    "accumulation": ("SGD", {"learning_rate": 0.05, "gradient_accumulation_steps": 2}),
    "accumulation_adam": ("Adam", {"gradient_accumulation_steps": 2}),
    "moving_average": ("SGD", {"learning_rate": 0.05, "use_ema": True, "ema_momentum": 0.9}),
    "moving_average_used": ("SGD", {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 3}),
    "weight_decay": ("SGD", {"learning_rate": 0.05, "weight_decay": 0.01}),
    "schedule": ("SGD", {"learning_rate": "schedule"}),
}
"""Keras' class and its arguments, by name."""

_built = 0


def __getattr__(name: str) -> Callable[[], "keras.Model"]:
    parts = name.split("__")
    if len(parts) not in (2, 4) or parts[0] not in (*gate_models.NAMES, *gate_own.DATA) or parts[1] not in OPTIMIZERS:
        raise AttributeError(name)

    def build() -> "keras.Model":
        return _build(*parts)

    build.__doc__ = name
    return build


def _build(model: str, optimizer: str, fault: str = "", start: str = "early") -> "keras.Model":
    import gate_layers
    import keras

    global _built
    _built += 1
    kind, keys = OPTIMIZERS[optimizer]
    if keys.get("learning_rate") == "schedule":
        keys = {**keys, "learning_rate": keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.8)}
    optimizer_class = getattr(keras.optimizers, kind)
    if fault and _built == 1:
        planted = FAULTS[fault]
        if planted.place == "variable":
            gate_layers.Counter.wrong_from = START[start]
        optimizer_class = Planted(planted, START[start]).optimizer(optimizer_class)
    else:
        gate_layers.Counter.wrong_from = None
    loss: Any = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    built, loss = gate_own.built(model) if model in gate_own.DATA else (gate_models.built(model), loss)
    built.compile(optimizer=optimizer_class(**keys), loss=loss)
    return built
