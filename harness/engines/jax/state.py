"""Training state as arrays in an order that stays: weights, then the optimizer's slots, then its count of updates."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.engines.jax.loops.base import State, Work
from harness.protocol.state import VariableState

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class Layout:
    """The order of `state`'s arrays. JAX sorts a dictionary by its keys; a model's own order is what is shown."""

    def __init__(self, names: Sequence[str], slots: Sequence[str]) -> None:
        self.names, self.slots = list(names), list(slots)

    @classmethod
    def of(cls, weights: "dict[str, Array]", work: Work) -> "Layout":
        """That of a model's weights and its optimizer's slots."""
        return cls(list(weights), work.optimizer.slots)

    def start(self, weights: "dict[str, Array]") -> State:
        """The first state, as NumPy has it."""
        import numpy as np

        slots = {slot: {name: np.zeros_like(weights[name]) for name in self.names} for slot in self.slots}
        return State(dict(weights), slots, np.int32(0))

    def arrays(self, state: State) -> Iterator[tuple[str, str, Any]]:
        """(name, kind, array) of each."""
        for name in self.names:
            yield name, "weight", state.weights[name]
        for slot in self.slots:
            for name in self.names:
                yield f"{slot}/{name}", f"slot:{slot}", state.slots[slot][name]
        yield "updates", "slot:updates", state.updates

    def state(self, arrays: Sequence[Any]) -> State:
        """The other way round, of arrays alone."""
        count = len(self.names)
        parts = [dict(zip(self.names, arrays[at : at + count], strict=True)) for at in range(0, len(arrays) - 1, count)]
        return State(parts[0], dict(zip(self.slots, parts[1:], strict=True)), arrays[-1])

    def captured(self, state: State) -> list[VariableState]:
        """Every array's copy on every device, by the device's number. Copied: a step overwrites what it is given."""
        import numpy as np

        def copies(array: Any) -> "tuple[Array, ...]":
            shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
            return tuple(np.array(shard.data) for shard in shards)

        return [VariableState(name, kind, copies(array)) for name, kind, array in self.arrays(state)]
