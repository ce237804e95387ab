"""What rounding alone can do to the reference, measured by running it again from perturbed weights.

NumPy alone, whatever ran the updates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.protocol.state import Reference, VariableState

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

PERTURBED_RUNS = 2
ULPS = {"float32": 8 * 2**-23, "tf32": 2**-10, "mixed_bfloat16": 2**-8, "mixed_float16": 2**-10}
"""Relative perturbation of the weights, by arithmetic: a few units in the last place of what is computed in."""
SIGNAL = 10
"""A gradient element is trusted when it is this many times the noise of its variable's gradient."""
SHARE_ROUNDING = 4
"""How many `ULPS` rounding makes of a share's gradient, which adds up a batch: seen is 12.5 % of what cancels in the
bias of a convolution before synchronised batch normalisation in bfloat16, where SIGNAL times this is 16 %."""


@dataclass(frozen=True)
class ReferenceRun:
    """The values that a run of the reference started from, and state, summed gradients and loss after each update.

    `sizes[u][w]` is the sum of the absolute values of what the shares gave for weight w; only the exact run has it.
    """

    start: "list[Array]"
    states: "list[list[Array]]" = field(default_factory=list)
    gradients: "list[list[Array]]" = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    sizes: "list[list[Array]]" = field(default_factory=list)


def perturbed_start(
    initial: Sequence[VariableState], arithmetic: str, generator: "np.random.Generator"
) -> "list[Array]":
    """Every variable's first copy, each element of a weight moved up or down by `ULPS`."""
    import numpy as np

    def moved(value: "Array") -> "Array":
        # A weight that is stored in fewer bits than it is computed in moves by a unit of its own.
        size = max(ULPS[arithmetic], float(np.spacing(value.dtype.type(1))))
        factors = 1 + size * generator.choice([-1.0, 1.0], size=value.shape)
        perturbed: Array = (value.astype(np.float64) * factors).astype(value.dtype)
        return perturbed

    return [moved(state.copies[0]) if state.kind == "weight" else state.copies[0] for state in initial]


def with_noise(
    exact: ReferenceRun, perturbed: Sequence[ReferenceRun], initial: Sequence[VariableState], arithmetic: str
) -> Reference:
    """The exact run as a reference, with what `perturbed` ones say of how well it can be agreed with."""
    trusted = _trusted(exact, perturbed, arithmetic)
    updates = range(len(exact.states))
    noise = [_noise_after(update, initial, exact, perturbed, trusted) for update in updates]
    losses = [max(abs(run.losses[update] - exact.losses[update]) for run in perturbed) for update in updates]
    return Reference(exact.states, noise, trusted, exact.losses, losses, arithmetic)


def _trusted(exact: ReferenceRun, perturbed: Sequence[ReferenceRun], arithmetic: str) -> "list[Array]":
    """For each trained weight, where its gradient exceeds SIGNAL times its root-mean-square noise.

    It must exceed what rounding each share's gradient can do as well. Of a bias before synchronised batch
    normalisation the shares' gradients are large and cancel, and what is left is how they were rounded; a few
    perturbed runs may all round alike.
    """
    import numpy as np

    masks = []
    for w in range(len(exact.gradients[0])):
        mask = np.ones(exact.gradients[0][w].shape, dtype=bool)
        for update, gradients in enumerate(exact.gradients):
            changes = np.stack([run.gradients[update][w] - gradients[w] for run in perturbed]).astype(np.float64)
            level = math.sqrt(float(np.mean(np.square(changes))))
            rounding = SHARE_ROUNDING * ULPS[arithmetic] * exact.sizes[update][w] if exact.sizes else 0.0
            mask &= np.abs(gradients[w]) > SIGNAL * np.maximum(level, rounding)
        masks.append(mask)
    return masks


def _noise_after(
    update: int,
    initial: Sequence[VariableState],
    exact: ReferenceRun,
    perturbed: Sequence[ReferenceRun],
    trusted: "Sequence[Array]",
) -> list[float]:
    """Norm of how much differently each variable changes where weights are perturbed.

    The perturbation itself is taken off: it is the difference that two runs began with, not what rounding made of it.
    """
    import numpy as np

    masks = iter(trusted)
    norms = []
    for v, state in enumerate(initial):
        mask: Array | None = next(masks) if state.kind == "weight" else None
        largest = 0.0
        for run in perturbed:
            difference = run.states[update][v].astype(np.float64) - exact.states[update][v].astype(np.float64)
            if mask is not None:
                began = run.start[v].astype(np.float64) - exact.start[v].astype(np.float64)
                difference = (difference - began)[mask]
            largest = max(largest, float(np.linalg.norm(difference)))
        norms.append(largest)
    return norms
