"""Training state as arrays: every variable's copy on every replica."""

from collections.abc import Iterator
from typing import Any

from harness.engines.tensorflow.server_state import ShardedVariable
from harness.protocol.state import VariableState
from harness.trial.copies import one_where_alike


def capture(model: Any, optimizer: Any) -> list[VariableState]:
    """The state of model and optimizer now, in a fixed order."""
    return [*read(model, optimizer)]


def read(model: Any, optimizer: Any) -> Iterator[VariableState]:
    """The same, of which each variable is read when it is asked for."""
    trainable = {id(variable) for variable in model.trainable_variables}
    for variable in model.variables:
        yield _read(variable, "weight" if id(variable) in trainable else "statistic")
    for variable in optimizer.variables:
        yield _read(variable, "slot:" + variable.path.rpartition("/")[2].rpartition("_")[2])


def copies_of(variable: Any) -> list[Any]:
    """The tf.Variable of each replica behind a Keras variable."""
    if isinstance(variable, ShardedVariable):
        return variable.copies()
    inner = variable.value
    return list(getattr(inner, "values", None) or [inner])


def _read(variable: Any, kind: str) -> VariableState:
    copies = (copy.numpy() for copy in copies_of(variable))  # each of them is nobody else's
    return VariableState(variable.path, kind, one_where_alike(copies, ours=True))
