"""Keras' optimizers by name, with their parameters: the constants of those that other engines have too are theirs."""

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
_OF_ALL = {**CLIPPING, "gradient_accumulation_steps": 1, "ema_momentum": 0.0, "decay_steps": 0}
"""What each of Keras' optimizers takes too, at what leaves it out."""
DECAYED_TO = 0.1
"""Share of the learning rate that the cosine ends at: at 0 no later update could be proved."""
_BETAS = {"beta_1": 0.9, "beta_2": 0.999}


@dataclass(frozen=True)
class KerasOptimizer:
    """`kind` is Keras' class, `own` are its own parameters with what it has where they are not given, which are Keras'
    defaults but for `learning_rate` of those that need another; a 0 is Keras' None."""

    summary: str
    kind: str
    rate: float = 1e-3
    weight_decay: float = 0.0
    own: Parameters = field(default_factory=dict)

    @property
    def defaults(self) -> Parameters:
        """Every parameter that may be given, and what it is where it is not."""
        return {"learning_rate": self.rate, "weight_decay": self.weight_decay, **self.own, **_OF_ALL}

    def build(self, given: Parameters) -> "keras.optimizers.Optimizer":
        """A fresh one, in which `decay_steps` is Keras' cosine schedule."""
        import keras

        keys: dict[str, Any] = {**self.defaults, **given}
        decay_steps, accumulated = keys.pop("decay_steps"), keys.pop("gradient_accumulation_steps")
        averaged = keys.pop("ema_momentum")
        if decay_steps:
            schedule = keras.optimizers.schedules.CosineDecay
            keys["learning_rate"] = schedule(keys["learning_rate"], decay_steps, alpha=DECAYED_TO)
        if averaged:
            keys |= {"use_ema": True, "ema_momentum": averaged}
        of_nothing = dict.fromkeys((*CLIPPING, "weight_decay"))
        keys = {key: value or None if key in of_nothing else value for key, value in keys.items()}
        made = getattr(keras.optimizers, self.kind)
        return made(**keys, gradient_accumulation_steps=accumulated if accumulated > 1 else None)


KERAS: Mapping[str, KerasOptimizer] = MappingProxyType({
    "adam": KerasOptimizer("Adam, learning rate 0.001; two slots a weight", "Adam", own=_BETAS),
    "sgd": KerasOptimizer("gradient descent, learning rate 0.01; no slots", "SGD", 0.01),
    "momentum": KerasOptimizer(
        "gradient descent with momentum 0.9, learning rate 0.01; one slot a weight", "SGD", 0.01, own={"momentum": 0.9}
    ),
    "adamw": KerasOptimizer("Adam with decoupled weight decay 0.004", "AdamW", weight_decay=0.004, own=_BETAS),
    "lamb": KerasOptimizer("LAMB: Adam, each layer's step scaled by its weights' norm", "Lamb", own=_BETAS),
    "lion": KerasOptimizer(
        "Lion: the sign of a momentum; one slot a weight", "Lion", own={"beta_1": 0.9, "beta_2": 0.99}
    ),
    "nadam": KerasOptimizer("Adam with Nesterov's momentum", "Nadam", own=_BETAS),
    "adamax": KerasOptimizer("Adam by the largest gradient", "Adamax", own=_BETAS),
    "rmsprop": KerasOptimizer("RMSprop; one slot a weight", "RMSprop", own={"rho": 0.9, "momentum": 0.0}),
    "adagrad": KerasOptimizer("Adagrad; one slot a weight", "Adagrad"),
    "adadelta": KerasOptimizer("Adadelta; two slots a weight", "Adadelta", 1.0, own={"rho": 0.95}),
    "ftrl": KerasOptimizer("FTRL; two slots a weight", "Ftrl"),
    "muon": KerasOptimizer(
        "Muon: orthogonalised momentum of matrices, AdamW of the rest", "Muon", weight_decay=0.004,
        own={"momentum": 0.95},
    ),
})  # fmt: skip
"""By name."""
_SLOTS = {"momentum": ("_momentums", "momentums"), "velocity": ("_velocities",)}
"""Where Keras' optimizers keep the variables of a slot: Adam, then SGD."""


def slot_of(optimizer: Any, slot: str) -> list[Any]:
    """The variables of a slot of a built optimizer, one a trained weight in their order."""
    found = (getattr(optimizer, name, None) for name in _SLOTS[slot])
    return next(variables for variables in found if variables)
