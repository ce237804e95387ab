"""What rounding alone can do to the reference, measured by running it again from perturbed weights.

NumPy alone, whatever ran the updates.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.errors import Unprovable
from harness.protocol.state import Reference, VariableState
from harness.trial.norms import blocks, distance, length, norm

if TYPE_CHECKING:
    import numpy as np

    from harness.protocol.state import Array

PERTURBED_RUNS = 2
RUNS_AGAIN = 8
"""So many where an update that is held by itself differs. Where a few numbers of a small map hang on a value near a
ReLU's end, that may lie on the reference's side in two of them, and on the other in the step. Seen: a unit of
MobileNetV2's last layer, with twelve images of 32 by 32."""
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

    `beyond[u][w]` marks the elements of weight w whose gradient in update u is not what rounding each share's can do
    (`beyond_rounding`); only the exact run has it, and one of a single share, which adds up nothing, has it neither.
    """

    start: "list[Array]"
    states: "list[list[Array]]" = field(default_factory=list)
    gradients: "list[list[Array]]" = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    beyond: "list[list[Array]]" = field(default_factory=list)

    def take(self, state: "Iterable[Array]", gradients: "list[Array]", loss: float) -> None:
        """Keep one more update."""
        self.states.append([*state])
        self.gradients.append(gradients)
        self.losses.append(loss)


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


@dataclass
class PerturbedRun:
    """What is kept of a run from perturbed weights, update by update: a whole run is several times the model."""

    exact: ReferenceRun
    initial: Sequence[VariableState]
    start: "list[Array]"
    """Of nothing once the run is over."""
    moved: "list[list[Array]]" = field(default_factory=list)
    """Of each weight, by update, how much further it has moved than in the exact run: of which elements that counts is
    known later."""
    gradients: list[list[float]] = field(default_factory=list)
    """Norm of the difference in each weight's gradient, by update."""
    steady: "list[Array]" = field(default_factory=list)
    """For each weight, where its gradient exceeds SIGNAL times its own difference in every update."""
    idle: "list[Array]" = field(default_factory=list)
    """For each weight, where its gradient is 0 in every update, and in the exact run too."""
    others: list[list[float]] = field(default_factory=list)
    """Norm of the difference in each variable that is no weight, after each update."""
    losses: list[float] = field(default_factory=list)

    def take(self, state: "Iterable[Array]", gradients: "list[Array]", loss: float) -> None:
        """Hold one more update beside the exact run's; of its state there is one variable at a time."""
        import numpy as np

        update = len(self.losses)
        moved: list[Array] = []
        others: list[float] = []
        found = zip(self.initial, state, self.start, self.exact.start, self.exact.states[update], strict=True)
        for variable, now, began, began_exact, expected in found:
            if variable.kind == "weight":
                moved.append(_further(began, now, began_exact, expected))
            else:
                others.append(_noise_of(now, expected))
        self.moved.append(moved)
        self.others.append(others)
        self.gradients.append([*map(_apart, gradients, self.exact.gradients[update])])
        steady = [*map(_steady, gradients, self.exact.gradients[update])]
        self.steady = [*map(np.logical_and, self.steady, steady)] if self.steady else steady
        idle = [(one == 0) & (exact == 0) for one, exact in zip(gradients, self.exact.gradients[update], strict=True)]
        self.idle = [*map(np.logical_and, self.idle, idle)] if self.idle else idle
        self.losses.append(abs(loss - self.exact.losses[update]))
        if len(self.losses) == len(self.exact.losses):
            self.start = []

    @classmethod
    def of(cls, run: ReferenceRun, exact: ReferenceRun, initial: Sequence[VariableState]) -> "PerturbedRun":
        """Of a `run` beside the `exact` one."""
        made = cls(exact, initial, run.start)
        for update in zip(run.states, run.gradients, run.losses, strict=True):
            made.take(*update)
        return made


def beyond_rounding(gradient: "Array", sizes: "Array", arithmetic: str) -> "Array":
    """Where a sum of gradients exceeds SIGNAL times what rounding the shares' can do, whose absolute values add up to
    `sizes`; or none has any."""
    import numpy as np

    mask: Array = np.abs(gradient) > SIGNAL * SHARE_ROUNDING * ULPS[arithmetic] * sizes
    mask |= sizes == 0
    return mask


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
    `Reference.few`. Raises Unprovable where rounding decides whether anything is finite.
    """
    for run in perturbed:
        _must_stay_finite(exact, run, initial)
    trusted = _trusted(exact, perturbed, otherwise)
    updates = range(len(exact.states))
    noise = [_noise_after(update, initial, perturbed, trusted) for update in updates]
    losses = [max(run.losses[update] for run in perturbed) for update in updates]
    idle = _idle(exact, perturbed, otherwise)
    return Reference(exact.states, noise, trusted, exact.losses, losses, arithmetic, few=few, idle=idle)


def _idle(exact: ReferenceRun, perturbed: Sequence[PerturbedRun], otherwise: "Sequence[Array] | None") -> "list[Array]":
    """For each trained weight, where no share has a gradient in any update, whatever it is run from and by."""
    import numpy as np

    masks = []
    for w in range(len(exact.gradients[0])):
        mask = np.logical_and.reduce([run.idle[w] for run in perturbed])
        for beyond in exact.beyond:
            mask &= beyond[w]  # shares that cancel are left out
        masks.append(mask if otherwise is None else mask & (otherwise[w] == 0))
    return masks


def _must_stay_finite(exact: ReferenceRun, perturbed: PerturbedRun, initial: Sequence[VariableState]) -> None:
    """Raises Unprovable where a perturbed run is not finite and the exact one is: no limit follows from that."""
    for update in range(len(exact.states)):
        for what in _no_longer_finite(exact, perturbed, initial, update):
            raise Unprovable(
                f"rounding alone decides whether the reference is finite: {what} is not after update {update + 1} from "
                "weights that are moved by a few units in the last place"
            )


def _no_longer_finite(
    exact: ReferenceRun, perturbed: PerturbedRun, initial: Sequence[VariableState], update: int
) -> Iterator[str]:
    """What is not finite in a perturbed run alone."""
    import numpy as np

    if math.isfinite(exact.losses[update]) and not math.isfinite(perturbed.losses[update]):
        yield "the loss"
    weights = [state.name for state in initial if state.kind == "weight"]
    for name, apart, gradient in zip(weights, perturbed.gradients[update], exact.gradients[update], strict=True):
        # A gradient that overflows in the exact run too is left out by loss scaling.
        if not math.isfinite(apart) and np.isfinite(gradient).all():
            yield f"the gradient of '{name}'"
    for name, moved in zip(weights, perturbed.moved[update], strict=True):
        if not math.isfinite(length(moved)):
            yield f"weight '{name}'"
    others = [state for state in initial if state.kind != "weight"]
    for other, noise in zip(others, perturbed.others[update], strict=True):
        if not math.isfinite(noise):
            yield f"{other.kind} '{other.name}'"


def _noise_of(now: "Array", expected: "Array") -> float:
    """‖now − expected‖; what is not finite in the exact run has no noise, and is to be the same."""
    import numpy as np

    found = distance(now, expected)
    return found if math.isfinite(found) else distance(now, expected, np.isfinite(expected))


def _trusted(
    exact: ReferenceRun, perturbed: Sequence[PerturbedRun], otherwise: "Sequence[Array] | None"
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
            if exact.beyond:
                mask &= exact.beyond[update][w].reshape(-1)
            for part in blocks(first.size):
                mask[part] &= np.abs(gradient[part]) > SIGNAL * level
        masks.append(mask.reshape(first.shape))
    return masks


def _apart(other: "Array", gradient: "Array") -> float:
    """Norm of how much a gradient changes where weights are perturbed."""
    import numpy as np

    one, exact = other.reshape(-1), gradient.reshape(-1)
    return norm(exact.size, lambda part, found, _: np.copyto(found, one[part] - exact[part], casting="unsafe"))


def _steady(other: "Array", exact: "Array") -> "Array":
    """Where an exact gradient is well above its own difference from another."""
    import numpy as np

    one, gradient = other.reshape(-1), exact.reshape(-1)
    mask = np.empty(exact.size, dtype=bool)
    for part in blocks(exact.size):
        np.greater(np.abs(gradient[part]), SIGNAL * np.abs(one[part] - gradient[part]), out=mask[part])
    return mask.reshape(exact.shape)


def _further(began: "Array", now: "Array", began_exact: "Array", expected: "Array") -> "Array":
    """How much further a weight has moved in one run than in the exact one, of each the weight before and after: the
    perturbation itself is the difference that they began with, not what rounding made of it. What is not finite in the
    exact run has no noise."""
    import numpy as np

    further = np.empty(expected.size, np.result_type(expected.dtype, np.float32))
    values = [value.reshape(-1) for value in (now, expected, began, began_exact)]
    for part in blocks(expected.size):
        one, two, three, four = (value[part].astype(np.float64) for value in values)
        with np.errstate(invalid="ignore"):
            np.copyto(further[part], one - two - three + four, casting="unsafe")
        np.copyto(further[part], 0, where=~np.isfinite(two))
    return further


def _noise_level(size: int, changes: Sequence[float]) -> float:
    """Their root mean square over the elements and the runs."""
    return math.hypot(*changes) / math.sqrt(max(1, size * len(changes)))


def _noise_after(
    update: int, initial: Sequence[VariableState], perturbed: Sequence[PerturbedRun], trusted: "Sequence[Array]"
) -> list[float]:
    """Norm of how much differently each variable changes where weights are perturbed."""
    weights, others = itertools.count(), itertools.count()
    norms = []
    for state in initial:
        if state.kind == "weight":
            w = next(weights)
            found = [length(run.moved[update][w], trusted[w]) for run in perturbed]
        else:
            other = next(others)
            found = [run.others[update][other] for run in perturbed]
        norms.append(max(0.0, *found))
    return norms
