"""Training state as arrays in an order that stays: weights, statistics, the optimizer's slots, its count of updates."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.protocol.state import VariableState

if TYPE_CHECKING:
    from harness.protocol.state import Array


class State(NamedTuple):
    """What a step changes: weights by name, the optimizer's arrays by slot and name, untrained statistics by name, and
    updates so far."""

    weights: dict[str, Any]
    slots: dict[str, dict[str, Any]]
    statistics: dict[str, Any]
    updates: Any


class Pass(NamedTuple):
    """What forward and backward give."""

    loss: Any
    gradients: dict[str, Any]
    statistics: dict[str, Any]


@dataclass(frozen=True)
class StateOrder:
    """The order of a state's arrays, which is the model's own, whatever an engine sorts dictionaries by.

    `own` is the number of devices where each keeps its own statistics, which then have a leading axis of them; else 0.
    """

    names: Sequence[str]
    statistics: Sequence[str]
    slots: Sequence[str]
    own: int

    def start(self, weights: "dict[str, Array]", statistics: "dict[str, Array]") -> State:
        """The first state, as NumPy has it."""
        import numpy as np

        slots = {slot: {name: np.zeros_like(weights[name]) for name in self.names} for slot in self.slots}
        if self.own:
            statistics = {name: np.stack([value] * self.own) for name, value in statistics.items()}
        return State(dict(weights), slots, statistics, np.int32(0))

    def arrays(self, state: State) -> Iterator[tuple[str, str, Any]]:
        """(name, kind, array) of each."""
        for name in self.names:
            yield name, "weight", state.weights[name]
        for name in self.statistics:
            yield name, "statistic", state.statistics[name]
        for slot in self.slots:
            for name in self.names:
                yield f"{slot}/{name}", f"slot:{slot}", state.slots[slot][name]
        yield "updates", "slot:updates", state.updates

    def state(self, arrays: Sequence[Any]) -> State:
        """The other way round, of arrays alone."""
        values = iter(arrays)
        weights = {name: next(values) for name in self.names}
        statistics = {name: next(values) for name in self.statistics}
        slots = {slot: {name: next(values) for name in self.names} for slot in self.slots}
        return State(weights, slots, statistics, next(values))

    def captured(self, state: State, copies: "Callable[[str, Any], tuple[Array, ...]]") -> list[VariableState]:
        """Every array, and what `copies` finds of one of a kind on each device that this process has."""
        return [VariableState(name, kind, copies(kind, array)) for name, kind, array in self.arrays(state)]
