"""What rounding alone can do to the reference, measured by running it again from perturbed weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.protocol.state import VariableState

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

PERTURBED_RUNS = 2
ULPS = {"float32": 8 * 2**-23, "mixed_bfloat16": 2**-8, "mixed_float16": 2**-10}
"""Relative perturbation of the weights, by precision: a few units in the last place of what is computed in."""
SIGNAL = 10
"""A gradient element is trusted when it is this many times the noise of its variable's gradient."""


@dataclass(frozen=True)
class ReferenceRun:
    """State and summed gradients after each update of a run of the reference."""

    states: "list[list[Array]]"
    gradients: "list[list[Array]]"


def perturbed_start(state: VariableState, precision: str, generator: "np.random.Generator") -> "Array":
    value = state.copies[0]
    if state.kind != "weight":
        return value
    factors = 1 + ULPS[precision] * generator.choice([-1.0, 1.0], size=value.shape)
    moved: Array = (value * factors).astype(value.dtype)
    return moved


def trusted_elements(exact: ReferenceRun, perturbed: list[ReferenceRun]) -> "list[Array]":
    """For each trained weight, where its gradient exceeds SIGNAL times its root-mean-square noise."""
    import numpy as np

    masks = []
    for w in range(len(exact.gradients[0])):
        mask = np.ones(exact.gradients[0][w].shape, dtype=bool)
        for update, gradients in enumerate(exact.gradients):
            changes = np.stack([run.gradients[update][w] - gradients[w] for run in perturbed]).astype(np.float64)
            level = math.sqrt(float(np.mean(np.square(changes))))
            mask &= np.abs(gradients[w]) > SIGNAL * level
        masks.append(mask)
    return masks


def noise_after(
    update: int,
    initial: Sequence[VariableState],
    exact: ReferenceRun,
    perturbed: list[ReferenceRun],
    trusted: "list[Array]",
) -> list[float]:
    """Norm of each variable's change under perturbation; for weights beyond the perturbation itself."""
    import numpy as np

    masks = iter(trusted)
    norms = []
    for v, state in enumerate(initial):
        mask = next(masks) if state.kind == "weight" else None
        largest = 0.0
        for run in perturbed:
            difference = run.states[update][v].astype(np.float64) - exact.states[update][v].astype(np.float64)
            part = difference if mask is None else difference[mask]
            largest = max(largest, float(np.linalg.norm(part)))
        norms.append(largest)
    return norms
