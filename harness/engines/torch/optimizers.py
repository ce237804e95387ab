"""PyTorch's own optimizers, with the constants and the formulas of Keras' of the same names."""

from collections.abc import Mapping
from typing import Any

from harness.trial.same_work.optimizers import ADAM_RATE, BETA_1, BETA_2, EPSILON, MOMENTUM, SGD_RATE

SLOTS: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "adam": {"momentum": ("exp_avg", 1.0), "velocity": ("exp_avg_sq", 1.0)},
    "sgd": {},
    "momentum": {"momentum": ("momentum_buffer", -SGD_RATE)},
}
"""By optimizer and by Keras' slot: PyTorch's name of it, and how many times as large Keras' is. PyTorch multiplies by
the learning rate when it moves the weights, Keras when it takes a gradient in."""


class CountedOptimizer:
    """An optimizer that counts its steps, as not each of PyTorch's does."""

    def __init__(self, name: str, parameters: list[Any]) -> None:
        from torch import optim

        self.steps = 0
        self._slots = SLOTS[name]
        if name == "adam":
            self.optimizer = optim.Adam(parameters, lr=ADAM_RATE, betas=(BETA_1, BETA_2), eps=EPSILON)
            self.optimizer.register_step_pre_hook(self._move_epsilon)
        else:
            self.optimizer = optim.SGD(parameters, lr=SGD_RATE, momentum=MOMENTUM if name == "momentum" else 0.0)
        self.optimizer.register_step_post_hook(self._count)

    def slot(self, slot: str, parameter: Any) -> Any:
        """What Keras' slot of a parameter would hold; zeros before the first step."""
        import torch

        name, factor = self._slots[slot]
        found = self.optimizer.state[parameter].get(name)
        return torch.zeros_like(parameter) if found is None else found * factor

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's own, and the steps."""
        return {"optimizer": self.optimizer.state_dict(), "steps": self.steps}

    def load_state_dict(self, found: Mapping[str, Any]) -> None:
        """What `state_dict` gave."""
        self.optimizer.load_state_dict(found["optimizer"])
        self.steps = found["steps"]

    def _move_epsilon(self, optimizer: Any, *_: Any) -> None:
        """Keras adds epsilon to the root of the raw second moment, PyTorch to that of the corrected one."""
        optimizer.param_groups[0]["eps"] = EPSILON / (1 - BETA_2 ** (self.steps + 1)) ** 0.5

    def _count(self, *_: Any) -> None:
        self.steps += 1
