"""Optimizers by name, with the constants and the formulas of Keras' of the same names."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.trial.same_work.state import State

SGD_RATE, MOMENTUM = 0.01, 0.9
ADAM_RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7

Slots = Mapping[str, Any]
Update = Callable[[Any, Any, Slots, Any], tuple[Any, dict[str, Any]]]
"""(weight, gradient, its slots, the number of this update from 1) -> (the new weight, its new slots)."""


class Optimizer(NamedTuple):
    """`slots` names the arrays that it keeps of every weight, all zero at first. `update` takes an engine's arrays as
    well as NumPy's, whose type it keeps."""

    summary: str
    slots: tuple[str, ...]
    update: Update

    def updated(self, state: State, gradients: Mapping[str, Any], statistics: dict[str, Any]) -> State:
        """One step; the statistics are those of the step's pass."""
        number = state.updates + 1
        weights, slots = {}, {slot: dict[str, Any]() for slot in state.slots}
        for name, weight in state.weights.items():
            own = {slot: of[name] for slot, of in state.slots.items()}
            weights[name], new = self.update(weight, gradients[name], own, number)
            for slot, value in new.items():
                slots[slot][name] = value
        return State(weights, slots, statistics, number)


def _sgd(weight: Any, gradient: Any, _slots: Slots, _number: Any) -> tuple[Any, dict[str, Any]]:
    return weight - SGD_RATE * gradient, {}


def _momentum(weight: Any, gradient: Any, slots: Slots, _number: Any) -> tuple[Any, dict[str, Any]]:
    momentum = MOMENTUM * slots["momentum"] - SGD_RATE * gradient
    return weight + momentum, {"momentum": momentum}


def _adam(weight: Any, gradient: Any, slots: Slots, number: Any) -> tuple[Any, dict[str, Any]]:
    """Kingma and Ba 2015, section 2, with the bias correction in the step size, as Keras has it."""
    mean = slots["momentum"] + (gradient - slots["momentum"]) * (1 - BETA_1)
    square = slots["velocity"] + (gradient * gradient - slots["velocity"]) * (1 - BETA_2)
    rate = ADAM_RATE * (1 - BETA_2**number) ** 0.5 / (1 - BETA_1**number)
    return weight - rate * mean / (square**0.5 + EPSILON), {"momentum": mean, "velocity": square}


OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {
        "adam": Optimizer("Adam, learning rate 0.001; two slots a weight", ("momentum", "velocity"), _adam),
        "sgd": Optimizer("gradient descent, learning rate 0.01; no slots", (), _sgd),
        "momentum": Optimizer(
            "gradient descent with momentum 0.9, learning rate 0.01; one slot a weight", ("momentum",), _momentum
        ),
    }
)
