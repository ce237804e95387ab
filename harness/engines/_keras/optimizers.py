"""Keras' optimizers by name, with their parameters: the constants of those that other engines have too are theirs."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.spec import calls

if TYPE_CHECKING:
    import keras

Parameters = Mapping[str, calls.ParameterValue]
CLIPPING = {"clipnorm": 0.0, "global_clipnorm": 0.0, "clipvalue": 0.0}
"""Of which Keras takes one at most."""
_OF_ALL = {**CLIPPING, "gradient_accumulation_steps": 1, "ema_momentum": 0.0, "decay_steps": 0, "warmup_steps": 0}
"""What each of Keras' optimizers takes too, at what leaves it out."""
LEAST_RATE = 0.1
"""Share of the learning rate that warming up begins at, and that the cosine ends at: at 0 no update could be proved."""
_EPSILON = {"epsilon": 1e-7}
_ADAPTIVE = {"beta_1": 0.9, "beta_2": 0.999, **_EPSILON}
_ADAM = {**_ADAPTIVE, "amsgrad": False}


@dataclass(frozen=True)
class KerasOptimizer:
    """`kind` is Keras' class, `own` are its own parameters with what it has where they are not given, which are Keras'
    defaults but for `learning_rate` of those that need another; a default of 0 is Keras' None."""

    summary: str
    kind: str
    rate: float = 1e-3
    weight_decay: float = 0.0
    own: Parameters = field(default_factory=dict)
    above_zero: tuple[str, ...] = ()
    """Besides the learning rate, those of `own` that Keras does not take at 0."""

    @property
    def from_zero(self) -> frozenset[str]:
        """Parameters that may be 0 whatever their default."""
        return frozenset(self.defaults) - {"learning_rate", *self.above_zero}

    @property
    def defaults(self) -> Parameters:
        """Every parameter that may be given, and what it is where it is not."""
        return {"learning_rate": self.rate, "weight_decay": self.weight_decay, **self.own, **_OF_ALL}

    def build(self, given: Parameters) -> "keras.optimizers.Optimizer":
        """A fresh one, in which `decay_steps` and `warmup_steps` are Keras' cosine schedule."""
        import keras

        keys: dict[str, Any] = {**self.defaults, **given}
        decay_steps, warmup_steps = keys.pop("decay_steps"), keys.pop("warmup_steps")
        averaged, accumulated = keys.pop("ema_momentum"), keys.pop("gradient_accumulation_steps")
        if decay_steps or warmup_steps:
            keys["learning_rate"] = _schedule(keys["learning_rate"], decay_steps, warmup_steps)
        if averaged:
            keys |= {"use_ema": True, "ema_momentum": averaged}
        of_nothing = [key for key in (*CLIPPING, "weight_decay") if not self.defaults[key]]
        keys = {key: value or None if key in of_nothing else value for key, value in keys.items()}
        made = getattr(keras.optimizers, self.kind)
        known = inspect.signature(made).parameters  # what an older Keras lacks it does by itself, unless it is given
        keys = {key: value for key, value in keys.items() if key in known or key in given or key not in self.own}
        return made(**keys, gradient_accumulation_steps=accumulated if accumulated > 1 else None)


def _schedule(rate: float, decay_steps: int, warmup_steps: int) -> "keras.optimizers.schedules.CosineDecay":
    """To `rate` in a straight line, where it is warmed up, and from there down a cosine, where it decays. The share of
    it that Keras ends at is of `rate` either way."""
    import keras

    cosine = keras.optimizers.schedules.CosineDecay
    falls: dict[str, Any] = {"decay_steps": decay_steps or 1, "alpha": LEAST_RATE if decay_steps else 1.0}
    if not warmup_steps:
        return cosine(rate, **falls)
    return cosine(rate * LEAST_RATE, **falls, warmup_target=rate, warmup_steps=warmup_steps)


KERAS: Mapping[str, KerasOptimizer] = MappingProxyType({
    "adam": KerasOptimizer("Adam, learning rate 0.001; two slots a weight", "Adam", own=_ADAM),
    "sgd": KerasOptimizer("gradient descent, learning rate 0.01; no slots", "SGD", 0.01),
    "momentum": KerasOptimizer(
        "gradient descent with momentum 0.9, learning rate 0.01; one slot a weight", "SGD", 0.01,
        own={"momentum": 0.9, "nesterov": False},
    ),
    "adamw": KerasOptimizer("Adam with decoupled weight decay 0.004", "AdamW", weight_decay=0.004, own=_ADAM),
    "lamb": KerasOptimizer("LAMB: Adam, each layer's step scaled by its weights' norm", "Lamb", own=_ADAPTIVE),
    "lion": KerasOptimizer(
        "Lion: the sign of a momentum; one slot a weight", "Lion", own={"beta_1": 0.9, "beta_2": 0.99},
        above_zero=("beta_1",),
    ),
    "nadam": KerasOptimizer("Adam with Nesterov's momentum", "Nadam", own=_ADAPTIVE),
    "adamax": KerasOptimizer("Adam by the largest gradient", "Adamax", own=_ADAPTIVE),
    "rmsprop": KerasOptimizer(
        "RMSprop; one slot a weight", "RMSprop", own={"rho": 0.9, "momentum": 0.0, **_EPSILON, "centered": False}
    ),
    "adagrad": KerasOptimizer(
        "Adagrad; one slot a weight", "Adagrad", own={"initial_accumulator_value": 0.1, **_EPSILON}
    ),
    "adadelta": KerasOptimizer("Adadelta; two slots a weight", "Adadelta", 1.0, own={"rho": 0.95, **_EPSILON}),
    "ftrl": KerasOptimizer(
        "FTRL; two slots a weight", "Ftrl",
        own={
            "initial_accumulator_value": 0.1, "l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0,
            "l2_shrinkage_regularization_strength": 0.0, "beta": 0.0,
        },
    ),
    "muon": KerasOptimizer(
        "Muon: orthogonalised momentum of matrices, AdamW of the rest", "Muon", weight_decay=0.004,
        own={
            "momentum": 0.95, "nesterov": True, "ns_steps": 5, "rms_rate": 0.2, **_EPSILON, "adam_beta_1": 0.9,
            "adam_beta_2": 0.999, "adam_weight_decay": 0.004, "adam_lr_ratio": 1.0, "exclude_embeddings": True,
        },
    ),
})  # fmt: skip
"""By name."""
_SLOTS = {"momentum": ("_momentums", "momentums"), "velocity": ("_velocities",)}
"""Where Keras' optimizers keep the variables of a slot: Adam, then SGD."""


def slot_of(optimizer: Any, slot: str) -> list[Any]:
    """The variables of a slot of a built optimizer, one a trained weight in their order."""
    found = (getattr(optimizer, name, None) for name in _SLOTS[slot])
    return next(variables for variables in found if variables)
