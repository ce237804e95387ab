"""Training state as arrays: every variable's copy on every replica."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.server_state import Served

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class VariableState:
    """One variable. `copies` has an array a replica, or one where there is a single copy.

    `kind` is `weight` (trained), `slot:<name>` (optimizer state), or `statistic`: untrained model
    state such as batch normalisation's moving averages. Copies of the first two must be identical;
    Keras 3 keeps statistics apart on every replica and never averages them.
    """

    name: str
    kind: str
    copies: "tuple[np.ndarray[Any, Any], ...]"


def capture(model: Any, optimizer: Any) -> list[VariableState]:
    """The state of model and optimizer now, in a fixed order."""
    trainable = {id(variable) for variable in model.trainable_variables}
    state = [_read(v, "weight" if id(v) in trainable else "statistic") for v in model.variables]
    return state + [_read(v, "slot:" + v.path.rpartition("/")[2].rpartition("_")[2]) for v in optimizer.variables]


def copies_of(variable: Any) -> list[Any]:
    """The tf.Variable of each replica behind a Keras variable."""
    if isinstance(variable, Served):
        return variable.copies()
    inner = variable.value
    return list(getattr(inner, "values", None) or [inner])


def _read(variable: Any, kind: str) -> VariableState:
    return VariableState(variable.path, kind, tuple(copy.numpy() for copy in copies_of(variable)))
