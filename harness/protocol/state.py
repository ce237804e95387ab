"""Training state as arrays: what an engine shows of it, and what the correctness gate holds it against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class VariableState:
    """One variable. `copies` has an array a replica, or one where there is a single copy.

    `kind` is `weight` (trained), `slot:<name>` (optimizer state), or `statistic`: untrained model
    state such as batch normalisation's moving averages. Copies of the first two must be identical;
    of a statistic every replica may keep its own (Keras 3 does, and never averages them).
    """

    name: str
    kind: str
    copies: "tuple[Array, ...]"


@dataclass(frozen=True)
class Reference:
    """What the gate's updates do on one device.

    `states[u][v]` is variable v, in the order of the trainer's `state`, after update u, a statistic with a leading
    axis of replicas, since each keeps its own; `noise[u][v]` the largest norm by which it changes otherwise under
    perturbation, for weights over trusted elements only; `trusted[w]` marks the elements of trained weight w whose
    gradients rise above their noise in every update.
    """

    states: "list[list[Array]]"
    noise: list[list[float]]
    trusted: "list[Array]"
    losses: Sequence[float] = ()
    """The mean over the global batch of each update; empty where the engine does not tell."""
    loss_noise: Sequence[float] = ()
    """The largest change of each under perturbation."""
    arithmetic: str = "float32"
    """What was computed in, a key of `harness.trial.judgement.STATE_TOLERANCE`."""
    sight: Mapping[str, float] | None = None
    """How many times its limit each fault that this cell can have would be (`harness.record.checks.Checks.sight`);
    None where the engine does not tell."""
    few: float = 0.0
    """Share of a variable's elements, those that differ most, which do not count."""
    idle: "list[Array]" = field(default_factory=list)
    """Marks the elements of each trained weight whose gradient is exactly 0 in every share, update and run; empty where
    the engine does not tell."""
