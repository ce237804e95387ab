"""What a loop must be able to do: a step over the devices, and the sum that its gradients take."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.engines.jax.models import Model
from harness.engines.jax.optimizers import Optimizer

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

AXIS = "replicas"
"""The mesh's only axis."""


class State(NamedTuple):
    """What a step changes: weights by name, the optimizer's arrays by slot and name, and updates so far."""

    weights: dict[str, Any]
    slots: dict[str, dict[str, Any]]
    updates: Any


@dataclass(frozen=True)
class Work:
    """What is trained: `global_batch` is G, of which each device has an equal part."""

    model: Model
    optimizer: Optimizer
    devices: list[Any]
    global_batch: int

    def share_loss(self, weights: Any, x: Any, y: Any) -> Any:
        """The part that the examples (x [b, ...], y [b]) have in the mean cross-entropy over the global batch."""
        from jax import nn
        from jax import numpy as jnp

        told = jnp.take_along_axis(nn.log_softmax(self.model.logits(weights, x)), y[:, jnp.newaxis], axis=1)
        return -jnp.sum(told) / self.global_batch

    def gradients(self, weights: Any, x: Any, y: Any) -> Any:
        """(loss, gradients) of `share_loss`."""
        import jax

        return jax.value_and_grad(self.share_loss)(weights, x, y)

    def updated(self, state: State, gradients: Any) -> State:
        """One step of the optimizer."""
        number = state.updates + 1
        weights, slots = {}, {slot: dict[str, Any]() for slot in state.slots}
        for name, weight in state.weights.items():
            own = {slot: of[name] for slot, of in state.slots.items()}
            weights[name], new = self.optimizer.update(weight, gradients[name], own, number)
            for slot, value in new.items():
                slots[slot][name] = value
        return State(weights, slots, number)


class Loop(ABC):
    """A way to train `work` on its devices."""

    def __init__(self, work: Work) -> None:
        self.work = work

    @abstractmethod
    def step(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        """One update and the mean loss over the global batch, traced."""

    @abstractmethod
    def summed(self, sent: list[Any]) -> list[Any]:
        """The sum over replicas of arrays [replicas, ...], one row a replica's, by the way of the gradients, traced."""

    @functools.cached_property
    def mesh(self) -> Any:
        """The devices in a row."""
        import numpy as np
        from jax.sharding import Mesh

        return Mesh(np.array(self.work.devices), (AXIS,))

    @functools.cached_property
    def everywhere(self) -> Any:
        """The sharding of what every device has whole."""
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self.mesh, PartitionSpec())

    @functools.cached_property
    def cut(self) -> Any:
        """The sharding of what is cut over the devices along its first dimension."""
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self.mesh, PartitionSpec(AXIS))

    def placed(self, batch: "tuple[Array, Array]") -> tuple[Any, Any]:
        """A global batch, each device's part on it; returns before the copy is done."""
        import jax

        x, y = jax.device_put(batch, self.cut)
        return x, y

    def lowered(self, state: State, x: Any, y: Any) -> Any:
        """The step as XLA gets it. What it is given of the state is overwritten, as an optimizer in place does."""
        import jax

        kept = (self.everywhere, self.everywhere)
        jitted = jax.jit(
            self.step, in_shardings=(self.everywhere, self.cut, self.cut), out_shardings=kept, donate_argnums=0
        )
        return jitted.lower(state, x, y)

    def reduced(self, sent: "Sequence[Array]") -> list[Any]:
        """`summed`, compiled and run as the step is."""
        import jax

        jitted = jax.jit(self.summed, in_shardings=(self.cut,), out_shardings=self.everywhere)
        found: list[Any] = jitted(jax.device_put(list(sent), self.cut))
        return found


@dataclass(frozen=True)
class LoopKind:
    """A registered loop."""

    name: str
    summary: str
    build: Callable[[Work], Loop]
