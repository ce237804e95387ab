"""What faults would look like to the gate: an update with a gradient that went wrong on its way.

Gradients are those of the exact run, so a fault costs an update of the optimizer and no forward pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.reference.update import Share, SingleDevice, summed_gradient, times_gradient

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Gradients = list[Any]
"""One a trained weight, as the optimizer takes it: a tensor, tf.IndexedSlices, or None."""


@dataclass(frozen=True)
class SummedGradients:
    """Of one update: the values before it, each replica's untrained state after it, and the sums of its gradients over
    all shares, and without the last's."""

    before: "list[Array]"
    own: "list[list[Array]]"
    whole: Gradients
    without_last: Gradients


def summed_over(before: "list[Array]", shares: Sequence[Share]) -> SummedGradients:
    """What is kept of an update's shares: two sums of gradients, however many they are."""

    def summed(kept: Sequence[Share]) -> Gradients:
        return [summed_gradient(parts) for parts in zip(*(share.gradients for share in kept), strict=True)]

    own = [share.statistics for share in shares]
    return SummedGradients(before, own, summed(shares), summed(shares[:-1]))


def faulty_states(
    device: SingleDevice, updates: Sequence[SummedGradients], only: str | None = None
) -> "dict[str, list[Array]]":
    """The state after the last update with each fault in it, or `only` one, by the fault's name (`Checks.sight`).

    `device` is left in a state of no meaning.
    """
    found = {}
    for name, gradients in _faults(updates):
        if only not in (None, name):
            continue
        device.start(updates[-1].before)
        device.apply([Share(gradients, None, [])])
        found[name] = device.state(updates[-1].own)
    return found


def _faults(updates: Sequence[SummedGradients]) -> Iterator[tuple[str, Gradients]]:
    """The faults that this cell can have, and the gradients that the optimizer would get."""
    last, replicas = updates[-1], len(updates[-1].own)
    if replicas > 1:
        yield "missing", last.without_last
        yield "averaged", [times_gradient(gradient, 1 / replicas) for gradient in last.whole]
    yield "doubled", [times_gradient(gradient, 2.0) for gradient in last.whole]
    if len(updates) > 1:
        yield "delayed", updates[-2].whole
