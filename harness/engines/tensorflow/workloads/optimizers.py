"""An optimizer as a spec says it; a compiled user model brings its own."""

import inspect
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.engines._keras.optimizers import CLIPPING, KERAS, Parameters
from harness.engines.tensorflow.own_training import has_its_optimizer
from harness.errors import UsageError, not_one_of
from harness.spec import calls

if TYPE_CHECKING:
    import keras

OPTIMIZERS: Mapping[str, str] = MappingProxyType({name: item.summary for name, item in KERAS.items()})
"""Name to summary, without importing TensorFlow."""
_NOT_CONFIGURED = ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern")
"""What `exclude_from_weight_decay` sets, which Keras leaves out of the configuration."""


def _asked(text: str) -> tuple[str, Parameters]:
    """The name and the parameters that `text` gives; UsageError names the key `optimizer`."""
    name = calls.name_of(text)
    if name not in KERAS:
        raise not_one_of("optimizer", name, KERAS)
    of = KERAS[name]
    others = {other: item.own for other, item in KERAS.items() if item.kind == of.kind}
    elsewhere = {parameter: other for other, own in others.items() for parameter in own}
    given = calls.parameters_of("optimizer", text, of.defaults, elsewhere, of.from_zero)
    if len(clipped := [key for key in CLIPPING if given.get(key)]) > 1:
        raise UsageError(f"optimizer: given {text!r}: {' and '.join(clipped)} together, expected one of them")
    return name, given


def optimizer_text(text: str) -> str:
    """The one spelling of an optimizer with parameters; UsageError where there is no such thing."""
    return calls.text_of(*_asked(text))


def optimizer_of(model: "keras.Model", text: str) -> "keras.optimizers.Optimizer":
    """A fresh, unbuilt optimizer: as the user compiled `model`, else the one that `text` says: `adam`,
    `adamw(clipnorm=1.0)`.

    The compiled one is taken by its configuration and what it excludes from weight decay, without its slots or step
    count, and never wrapped in a LossScaleOptimizer: scaling follows the cell's precision and is the caller's.
    Raises UsageError where there is no such optimizer.
    """
    import keras

    name, given = _asked(text)
    if not has_its_optimizer(model):
        return KERAS[name].build(given)
    own = model.optimizer
    if isinstance(own, keras.optimizers.LossScaleOptimizer):
        own = own.inner_optimizer
    config, rate = own.get_config(), own._learning_rate
    if "learning_rate" in config and callable(rate):
        config["learning_rate"] = rate  # a schedule of the user's own would have to be registered; a lambda cannot be
    fresh = type(own).from_config(config)
    for name in _NOT_CONFIGURED:
        if hasattr(own, name):
            setattr(fresh, name, getattr(own, name))
    return fresh


def built_text(optimizer: "keras.optimizers.Optimizer") -> str:
    """What an optimizer was made of, from itself: `AdamW(learning_rate=0.001, weight_decay=0.004, …)`.

    Of a schedule the name of its class and what it was made of, of a function its name. What is None or False is left
    out, and so is a 0 that was not chosen in place of another default.
    """
    import keras

    kept, rate = dict(optimizer.get_config()), optimizer._learning_rate
    if callable(rate) and not isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        kept["learning_rate"] = getattr(rate, "__name__", type(rate).__name__)
    if not kept.get("use_ema"):
        kept.pop("ema_momentum", None)
    by_default = {key: made.default for key, made in inspect.signature(type(optimizer)).parameters.items()}
    return _made_text(type(optimizer).__name__, kept, chosen={key for key in kept if by_default.get(key)})


def _made_text(kind: str, config: Mapping[str, Any], chosen: Collection[str] = ()) -> str:
    kept = {
        key: value
        for key, value in config.items()
        if key != "name" and value is not None and value is not False and (value != 0 or key in chosen)
    }
    return f"{kind}({', '.join(f'{key}={_value_text(value)}' for key, value in kept.items())})"


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):  # an inner optimizer or a schedule, as Keras serialises it
        return _made_text(str(value.get("class_name")), value.get("config", {}))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
