"""What faults would look like to the gate: an update with a gradient that went wrong on its way.

Gradients are those of the exact run, so a fault costs an update of the optimizer and no forward pass.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.reference.update import Share, SingleDevice, summed_gradient, times_gradient
from harness.trial.judgement import faults_of
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    from harness.protocol.state import Array

Gradients = list[Any]
"""One a trained weight: an array, tf.IndexedSlices, or None."""


@dataclass(frozen=True)
class SummedGradients:
    """Of one update: the values before it, each replica's untrained state after it, and the sums of its gradients over
    all shares, and without the last's."""

    before: "list[Array]"
    own: "list[list[Array]]"
    whole: Gradients
    without_last: Gradients


def summed_over(before: "list[Array]", shares: Sequence[Share], sums: "list[Array]") -> SummedGradients:
    """What is kept of an update's shares: two sums of gradients, however many they are. `sums` are the first of them as
    arrays, which are kept as those: what TensorFlow has once taken for its tensors it does not give back."""

    def summed(kept: Sequence[Share], known: "Iterator[Array | None]") -> Gradients:
        of_weights = zip(*(share.gradients for share in kept), strict=True)
        return [_kept(parts, array) for parts, array in zip(of_weights, known, strict=False)]

    own = [share.statistics for share in shares]
    return SummedGradients(before, own, summed(shares, iter(sums)), summed(shares[:-1], itertools.repeat(None)))


def _kept(parts: Sequence[Any], known: "Array | None") -> Any:
    """The sum of the shares' gradients of a weight, `known` where it is dense."""
    import tensorflow as tf

    dense = any(part is not None and not isinstance(part, tf.IndexedSlices) for part in parts)
    if not dense:
        return summed_gradient(parts)
    return summed_gradient(parts).numpy() if known is None else known


def faulty_states(
    device: SingleDevice, updates: Sequence[SummedGradients], only: str | None = None
) -> "Iterator[tuple[str, Iterator[Array]]]":
    """The state after the last update with each fault in it, or `only` one, and the fault's name (`Checks.sight`).

    `device` is left in a state of no meaning.
    """
    last, earlier = updates[-1], updates[-2].whole if len(updates) > 1 else None
    for name, gradients in faults_of(last.whole, last.without_last, earlier, len(last.own), _times):
        if only not in (None, name):
            continue
        sign_of_life()
        device.start(last.before)
        device.apply([Share(gradients, None, [])])
        yield name, device.state(last.own)


def _times(gradients: Gradients, factor: float) -> Gradients:
    return [times_gradient(gradient, factor) for gradient in gradients]
