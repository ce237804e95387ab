"""Keras' optimizers by name and parameters; a compiled user model brings its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.engines._keras.optimizers import BUILT
from harness.errors import UsageError, not_one_of
from harness.spec import calls

if TYPE_CHECKING:
    import keras

Parameters = Mapping[str, calls.ParameterValue]
_CLIPPING = {"clipnorm": 0.0, "global_clipnorm": 0.0, "clipvalue": 0.0}
"""Of which Keras takes one at most."""
_OF_ALL = {**_CLIPPING, "gradient_accumulation_steps": 1, "ema_momentum": 0.0, "decay_steps": 0}
"""What each of Keras' optimizers takes too, at what leaves it out."""
DECAYED_TO = 0.1
"""Share of the learning rate that the cosine ends at: at 0 no later update could be proved."""
_BETAS = {"beta_1": 0.9, "beta_2": 0.999}


@dataclass(frozen=True)
class _Optimizer:
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
        of_nothing = dict.fromkeys((*_CLIPPING, "weight_decay"))
        keys = {key: value or None if key in of_nothing else value for key, value in keys.items()}
        made = getattr(keras.optimizers, self.kind)
        return made(**keys, gradient_accumulation_steps=accumulated if accumulated > 1 else None)


_BY_NAME = {
    "adam": _Optimizer("Adam, learning rate 0.001; two slots a weight", "Adam", own=_BETAS),
    "sgd": _Optimizer("gradient descent, learning rate 0.01; no slots", "SGD", 0.01),
    "momentum": _Optimizer(
        "gradient descent with momentum 0.9, learning rate 0.01; one slot a weight", "SGD", 0.01, own={"momentum": 0.9}
    ),
    "adamw": _Optimizer("Adam with decoupled weight decay 0.004", "AdamW", weight_decay=0.004, own=_BETAS),
    "lamb": _Optimizer("LAMB: Adam, each layer's step scaled by its weights' norm", "Lamb", own=_BETAS),
    "lion": _Optimizer("Lion: the sign of a momentum; one slot a weight", "Lion", own={"beta_1": 0.9, "beta_2": 0.99}),
    "nadam": _Optimizer("Adam with Nesterov's momentum", "Nadam", own=_BETAS),
    "adamax": _Optimizer("Adam by the largest gradient", "Adamax", own=_BETAS),
    "rmsprop": _Optimizer("RMSprop; one slot a weight", "RMSprop", own={"rho": 0.9, "momentum": 0.0}),
    "adagrad": _Optimizer("Adagrad; one slot a weight", "Adagrad"),
    "adadelta": _Optimizer("Adadelta; two slots a weight", "Adadelta", 1.0, own={"rho": 0.95}),
    "ftrl": _Optimizer("FTRL; two slots a weight", "Ftrl"),
    "muon": _Optimizer(
        "Muon: orthogonalised momentum of matrices, AdamW of the rest", "Muon", weight_decay=0.004,
        own={"momentum": 0.95},
    ),
}  # fmt: skip

OPTIMIZERS: Mapping[str, str] = MappingProxyType({name: item.summary for name, item in _BY_NAME.items()})
"""Name to summary, without importing TensorFlow."""


def _asked(text: str) -> tuple[str, Parameters]:
    """The name and the parameters that `text` gives; UsageError names the key `optimizer`."""
    name = calls.name_of(text)
    if name not in _BY_NAME:
        raise not_one_of("optimizer", name, _BY_NAME)
    given = calls.parameters_of("optimizer", text, _BY_NAME[name].defaults)
    if len(clipped := [key for key in _CLIPPING if given.get(key)]) > 1:
        raise UsageError(f"optimizer: given {text!r}: {' and '.join(clipped)} together, expected one of them")
    return name, given


def optimizer_text(text: str) -> str:
    """The one spelling of an optimizer with parameters; UsageError where there is no such thing."""
    return calls.text_of(*_asked(text))


def optimizer_of(model: "keras.Model", text: str) -> "keras.optimizers.Optimizer":
    """A fresh, unbuilt optimizer: as the user compiled `model`, else the one that `text` says: `adam`,
    `adamw(clipnorm=1.0)`.

    The compiled one is taken by its configuration, without its slots or step count, and never
    wrapped in a LossScaleOptimizer: scaling follows the cell's precision and is the caller's.
    Raises UsageError where there is no such optimizer.
    """
    import keras

    name, given = _asked(text)
    if not model.compiled or model.optimizer is None:
        return _BY_NAME[name].build(given) if given or name not in BUILT else BUILT[name]()
    own = model.optimizer
    if isinstance(own, keras.optimizers.LossScaleOptimizer):
        own = own.inner_optimizer
    config, rate = own.get_config(), own._learning_rate
    if "learning_rate" in config and isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        config["learning_rate"] = rate  # a class of the user's own would have to be registered to be found by its name
    return type(own).from_config(config)


def built_text(optimizer: "keras.optimizers.Optimizer") -> str:
    """What an optimizer was made of, from itself: `AdamW(learning_rate=0.001, weight_decay=0.004, …)`.

    Of a schedule the name of its class and what it was made of. What is None or False is left out.
    """
    kept = {key: value for key, value in optimizer.get_config().items() if key != "name" and value not in (None, False)}
    if not kept.get("use_ema"):
        kept.pop("ema_momentum", None)
    return f"{type(optimizer).__name__}({', '.join(f'{key}={_value_text(value)}' for key, value in kept.items())})"


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):  # an inner optimizer or a schedule, as Keras serialises it
        of = {key: item for key, item in value.get("config", {}).items() if key != "name" and item not in (None, False)}
        return f"{value.get('class_name')}({', '.join(f'{key}={_value_text(item)}' for key, item in of.items())})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
