"""What rounding alone can do to the reference, measured by running it again from perturbed weights.

NumPy alone, whatever ran the updates.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.protocol.state import Reference, VariableState
from harness.trial.norms import blocks, distance, norm

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
        flat = value.reshape(-1)
        perturbed = np.empty_like(flat)
        for part in blocks(flat.size):
            count = part.stop - part.start
            up = np.unpackbits(np.frombuffer(generator.bytes(-(-count // 8)), np.uint8), count=count)
            np.copyto(perturbed[part], flat[part].astype(np.float64) * (1 - size + 2 * size * up), casting="unsafe")
        return perturbed.reshape(value.shape)

    return [moved(state.copies[0]) if state.kind == "weight" else state.copies[0] for state in initial]


@dataclass(frozen=True)
class PerturbedRun:
    """What is kept of a run from perturbed weights: its weights, of which it is known later which elements count, and
    of all else how far it is from the exact run. A whole run is several times the model."""

    start: "list[Array]"
    states: "list[list[Array]]"
    """Weights alone, after each update; `start` has those before the first."""
    gradients: list[list[float]]
    """Norm of the difference in each weight's gradient, by update."""
    steady: "list[Array]"
    """For each weight, where its gradient exceeds SIGNAL times its own difference in every update."""
    others: list[list[float]]
    """Norm of the difference in each variable that is no weight, after each update."""
    losses: list[float]

    @classmethod
    def of(cls, run: ReferenceRun, exact: ReferenceRun, initial: Sequence[VariableState]) -> "PerturbedRun":
        """Of a `run` beside the `exact` one."""
        weights = [v for v, state in enumerate(initial) if state.kind == "weight"]
        others = [v for v, state in enumerate(initial) if state.kind != "weight"]
        states = list(zip(run.states, exact.states, strict=True))
        gradients = list(zip(run.gradients, exact.gradients, strict=True))
        return cls(
            [run.start[v] for v in weights],
            [[state[v] for v in weights] for state in run.states],
            [[*map(_apart, *of_update)] for of_update in gradients],
            [_steady([(of[w], exact_of[w]) for of, exact_of in gradients]) for w in range(len(weights))],
            [[distance(state[v], expected[v]) for v in others] for state, expected in states],
            [abs(loss - expected) for loss, expected in zip(run.losses, exact.losses, strict=True)],
        )


def with_noise(
    exact: ReferenceRun,
    perturbed: Sequence[PerturbedRun],
    initial: Sequence[VariableState],
    arithmetic: str,
    otherwise: "Sequence[Array] | None" = None,
    few: float = 0.0,
) -> Reference:
    """The exact run as a reference, with what `perturbed` ones say of how well it can be agreed with.

    `otherwise` are the gradients of its first update as a program has them, where no run has shown that; `few` is
    `Reference.few`.
    """
    trusted = _trusted(exact, perturbed, arithmetic, otherwise)
    updates = range(len(exact.states))
    noise = [_noise_after(update, initial, exact, perturbed, trusted) for update in updates]
    losses = [max(run.losses[update] for run in perturbed) for update in updates]
    return Reference(exact.states, noise, trusted, exact.losses, losses, arithmetic, few=few)


def _trusted(
    exact: ReferenceRun,
    perturbed: Sequence[PerturbedRun],
    arithmetic: str,
    otherwise: "Sequence[Array] | None" = None,
) -> "list[Array]":
    """For each trained weight, where its gradient exceeds SIGNAL times its root-mean-square noise, and that of its own.

    Noise is not spread evenly: of a kernel over images of 2 by 2 some elements have ten times what the others have, and
    under Adam one whose gradient changes its sign moves as far as any other, the other way.

    It must exceed what rounding each share's gradient can do as well. Of a bias before synchronised batch
    normalisation the shares' gradients are large and cancel, and what is left is how they were rounded; a few
    perturbed runs may all round alike.
    """
    import numpy as np

    masks = []
    for w, first in enumerate(exact.gradients[0]):
        mask = np.logical_and.reduce([run.steady[w].reshape(-1) for run in perturbed])
        least = 0.0 if otherwise is None else _noise_level(first.size, [_apart(otherwise[w], first)])
        for update, gradients in enumerate(exact.gradients):
            gradient = gradients[w].reshape(-1)
            level = max(least, _noise_level(first.size, [run.gradients[update][w] for run in perturbed]))
            sizes = exact.sizes[update][w].reshape(-1) if exact.sizes else None
            for part in blocks(first.size):
                rounding = 0.0 if sizes is None else SHARE_ROUNDING * ULPS[arithmetic] * sizes[part]
                mask[part] &= np.abs(gradient[part]) > SIGNAL * np.maximum(level, rounding)
        masks.append(mask.reshape(first.shape))
    return masks


def _apart(other: "Array", gradient: "Array") -> float:
    """Norm of how much a gradient changes where weights are perturbed."""
    import numpy as np

    one, exact = other.reshape(-1), gradient.reshape(-1)
    return norm(exact.size, lambda part, found, _: np.copyto(found, one[part] - exact[part], casting="unsafe"))


def _steady(pairs: "Sequence[tuple[Array, Array]]") -> "Array":
    """Where each gradient, the second of a pair, is well above its own difference from the first."""
    import numpy as np

    shape, size = pairs[0][1].shape, pairs[0][1].size
    mask = np.ones(size, dtype=bool)
    for other, exact in ((one.reshape(-1), gradient.reshape(-1)) for one, gradient in pairs):
        for part in blocks(size):
            mask[part] &= np.abs(exact[part]) > SIGNAL * np.abs(other[part] - exact[part])
    return mask.reshape(shape)


def _noise_level(size: int, changes: Sequence[float]) -> float:
    """Their root mean square over the elements and the runs."""
    return math.hypot(*changes) / math.sqrt(max(1, size * len(changes)))


def _noise_after(
    update: int,
    initial: Sequence[VariableState],
    exact: ReferenceRun,
    perturbed: Sequence[PerturbedRun],
    trusted: "Sequence[Array]",
) -> list[float]:
    """Norm of how much differently each variable changes where weights are perturbed.

    The perturbation itself is taken off: it is the difference that two runs began with, not what rounding made of it.
    """
    weights, others = itertools.count(), itertools.count()
    norms = []
    for v, state in enumerate(initial):
        if state.kind == "weight":
            w, before_and_after = next(weights), (exact.start[v], exact.states[update][v])
            again = ((run.start[w], run.states[update][w]) for run in perturbed)
            found = [_moved_apart(values, before_and_after, trusted[w]) for values in again]
        else:
            other = next(others)
            found = [run.others[update][other] for run in perturbed]
        norms.append(max(0.0, *found))  # what is no number is not the larger
    return norms


def _moved_apart(again: "tuple[Array, Array]", exact: "tuple[Array, Array]", mask: "Array") -> float:
    """Norm of the difference of two runs in the trusted elements of a weight, beyond what they began with; of each run
    the weight before it and after."""
    import numpy as np

    began, now, began_exact, expected = (value.reshape(-1) for value in (*again, *exact))

    def difference(part: slice, found: "Array", room: "Array") -> None:
        np.copyto(found, now[part], casting="unsafe")
        for value, joins in ((expected, np.subtract), (began, np.subtract), (began_exact, np.add)):
            np.copyto(room, value[part], casting="unsafe")
            joins(found, room, out=found)

    return norm(mask.size, difference, mask.reshape(-1))
