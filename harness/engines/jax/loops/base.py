"""What a loop must be able to do: a step over the devices, and the sum that its gradients take."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from harness.engines._on_jax.devices import laid
from harness.engines._on_jax.model import TrainedModel
from harness.trial.same_work.state import Pass, State

if TYPE_CHECKING:
    from harness.protocol.state import Array

AXIS = "replicas"
"""The mesh's only axis."""


class Way(ABC):
    """A way to train `trained` on its devices."""

    own_statistics: ClassVar[bool]
    """Whether each device keeps the statistics of its own part of a batch: they then have a leading axis of devices.
    Else they are of the whole batch, and the same everywhere."""

    def __init__(self, trained: TrainedModel) -> None:
        self.trained = trained

    @abstractmethod
    def step(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        """One update and the mean loss over the global batch, traced."""

    @abstractmethod
    def gradients(self, state: State, x: Any, y: Any) -> Pass:
        """Forward and backward as a step does them, gradients and loss added up over the devices, traced."""

    @abstractmethod
    def forward(self, state: State, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """(the loss, statistics afterwards), traced; the loss is of what the way adds up by itself."""

    @abstractmethod
    def summed(self, sent: list[Any]) -> list[Any]:
        """The sum over replicas of arrays [replicas, ...], one row a replica's, by the way of the gradients, traced."""

    @functools.cached_property
    def mesh(self) -> Any:
        """The devices in a row."""
        import numpy as np
        from jax.sharding import Mesh

        return Mesh(np.array(self.trained.devices), (AXIS,))

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

    @property
    def of_state(self) -> State:
        """The sharding of each part of the state."""
        return State(
            self.everywhere, self.everywhere, self.cut if self.own_statistics else self.everywhere, self.everywhere
        )

    def placed_state(self, state: State) -> State:
        """A state of NumPy's, the same in each process, on the devices."""
        return State(*(laid(part, sharding) for part, sharding in zip(state, self.of_state, strict=True)))

    def share_on_devices(self, share: "tuple[Array, Array]") -> tuple[Any, Any]:
        """This process's share of a batch, each device's part on it; returns before the copy is done."""
        x, y = self.in_parts(share)
        return x, y

    def in_parts(self, shares: "Sequence[Array]") -> list[Any]:
        """Arrays of which this process has `shares` along their first dimension, cut over the devices of all."""
        import jax

        if jax.process_count() == 1:
            found: list[Any] = jax.device_put(list(shares), self.cut)
            return found
        return [jax.make_array_from_process_local_data(self.cut, share) for share in shares]

    def lowered(self, state: State, x: Any, y: Any) -> Any:
        """The step as XLA gets it. What it is given of the state is overwritten, as an optimizer in place does."""
        import jax

        given, kept = (self.of_state, self.cut, self.cut), (self.of_state, self.everywhere)
        jitted = jax.jit(self.step, in_shardings=given, out_shardings=kept, donate_argnums=0)
        return jitted.lower(state, x, y)

    def reduced(self, sent: "Sequence[Array]") -> list[Any]:
        """`summed` of the rows that this process sends, compiled and run as the step is."""
        import jax

        jitted = jax.jit(self.summed, in_shardings=(self.cut,), out_shardings=self.everywhere)
        found: list[Any] = jitted(self.in_parts(sent))
        return found


@dataclass(frozen=True)
class WayKind:
    """A registered loop."""

    name: str
    summary: str
    build: Callable[[TrainedModel], Way]
