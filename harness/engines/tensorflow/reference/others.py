"""Untrained state that replicas of other workers have, of which the process that holds the reference knows nothing.

All begin alike, so what the first updates make of it the reference itself finds out. Of a later state it has its own
replicas' alone. Mostly that is all it needs: batch normalisation trains by its batch's mean, not by its moving one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.engines.tensorflow.reference.arithmetic import coarsest_arithmetic
from harness.engines.tensorflow.reference.own_update import single_device
from harness.engines.tensorflow.reference.update import Share, dense_gradient
from harness.engines.tensorflow.training import Training
from harness.errors import Unprovable
from harness.protocol.state import VariableState
from harness.trial.judgement import STATE_TOLERANCE
from harness.trial.norms import distance, length

if TYPE_CHECKING:
    from harness.protocol.state import Array


def must_not_need_others(training: Training, before: Sequence[VariableState]) -> None:
    """Raises Unprovable where what a replica of another worker computes depends on its own untrained state.

    That is tried: its share is computed from the state that is taken for it, and from one that is far from that.
    """
    import tensorflow as tf

    if training.cell.workers == 1 or training.cell.asynchronous or not any(by_replica := _differs_by_replica(training)):
        return
    with tf.device(training.devices.reference or training.devices.names[0]):
        device = single_device(training)
        taken = device.start([state.copies[0] for state in before])
        own = training.cell.replicas
        far = [_moved(values, by_replica) if r >= own else values for r, values in enumerate(taken)]
        shares, others = (device.shares(training.late_batches[0], state) for state in (taken, far))
    tolerance = STATE_TOLERANCE[coarsest_arithmetic(training)]
    for share, other in zip(shares[own:], others[own:], strict=True):
        for a, b in zip(_computed(training, share), _computed(training, other), strict=True):
            if not distance(a, b) <= tolerance * length(a):
                raise Unprovable(
                    "what another worker's replica computes depends on its own untrained state, such as statistics, "
                    "and one process knows only that of its own replicas"
                )


def _differs_by_replica(training: Training) -> list[bool]:
    """Of each untrained variable, whether each replica has its own value, which its batches have moved.

    What is no number with a fraction counts updates or draws seeds, on all replicas alike; a weight that a layer has
    frozen stays as it was built.
    """
    import tensorflow as tf

    frozen = {id(weight) for layer in training.model._flatten_layers() for weight in layer._trainable_variables}
    return [
        tf.as_dtype(variable.dtype).is_floating
        and id(variable) not in frozen
        and (variable.aggregation == "none" or variable.synchronization == "on_read")
        for variable in training.model.non_trainable_variables
    ]


def _moved(values: "list[Array]", chosen: list[bool]) -> "list[Array]":
    """Other values that may stand in their place: a variance is to stay above 0."""
    return [(1.25 * v + 0.25).astype(v.dtype) if move else v for v, move in zip(values, chosen, strict=True)]


def _computed(training: Training, share: Share) -> "list[Array]":
    """The loss and the gradients of a share."""
    import numpy as np

    weights = training.model.trainable_variables
    return [np.asarray(share.loss), *(dense_gradient(g, w) for g, w in zip(share.gradients, weights, strict=True))]
