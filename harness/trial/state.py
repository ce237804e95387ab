"""Training state as arrays: every variable's copy on every replica."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class VariableState:
    """One variable. `copies` has an array a replica, or one where there is a single copy.

    `mirrored` copies must be identical; others (statistics that replicas keep apart) are averaged
    when read.
    """

    name: str
    kind: str
    """`weight`, `statistic` (untrained model state) or `slot:<name>` (optimizer state)."""
    copies: "tuple[np.ndarray[Any, Any], ...]"
    mirrored: bool


def capture(model: Any, optimizer: Any) -> list[VariableState]:
    """The state of model and optimizer now, in a fixed order."""
    trainable = {id(variable) for variable in model.trainable_variables}
    state = [_read(v, "weight" if id(v) in trainable else "statistic") for v in model.variables]
    return state + [_read(v, "slot:" + v.path.rpartition("/")[2].rpartition("_")[2]) for v in optimizer.variables]


def copies_of(variable: Any) -> list[Any]:
    """The tf.Variable of each replica behind a Keras variable."""
    inner = variable.value
    return list(getattr(inner, "values", None) or [inner])


def _read(variable: Any, kind: str) -> VariableState:
    arrays = tuple(copy.numpy() for copy in copies_of(variable))
    on_read = "SyncOnRead" in type(variable.value).__name__
    return VariableState(variable.path, kind, arrays, mirrored=not on_read)
