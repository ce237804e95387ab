"""The reference: the same updates on one device, eagerly, without tf.distribute.

Each replica's share of the global batch is run by itself and the gradients are added, because batch
normalisation and dropout work on a replica's share; for layers without such state this is the update
on the whole global batch.

How closely another order of additions can be expected to agree differs by variable: the bias of a
convolution before batch normalisation has no true gradient at all, so what Adam does with it is
rounding noise. That is measured, not guessed: the reference is run again from weights perturbed by a
few units in the last place, and what changes then is the noise that the comparison allows for.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.reference.noise import (
    PERTURBED_RUNS,
    ReferenceRun,
    noise_after,
    perturbed_start,
    trusted_elements,
)
from harness.engines.tensorflow.reference.update import SingleDevice
from harness.engines.tensorflow.training import Training
from harness.protocol.state import Reference, VariableState
from harness.trial.array_cache import kept

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def run_reference(training: Training, initial: Sequence[VariableState]) -> Reference:
    """Train a second model, started from `initial`, on the gate's batches.

    The result is kept in the run's scratch folder under a hash of all that it depends on: cells that
    differ in strategy or op alone, and every further trial, are held against the same reference.
    """
    arrays = kept(
        training.request.scratch, "reference", _key(training, initial), lambda: _arrays(_compute(training, initial))
    )
    states = [[arrays[f"state-{u}-{v}"] for v in range(len(initial))] for u in range(len(training.batches))]
    weights = sum(state.kind == "weight" for state in initial)
    return Reference(states, arrays["noise"].tolist(), [arrays[f"trusted-{w}"] for w in range(weights)])


def _key(training: Training, initial: Sequence[VariableState]) -> bytes:
    """The initial state, the batches, and the keys of the cell that bear on a single device."""
    cell = training.cell
    parts = (cell.model, cell.optimizer, cell.precision, cell.device, cell.replicas_per_update, cell.xla)
    arrays = [variable.copies[0] for variable in initial] + [a for batch in training.batches for a in batch]
    shapes = [(array.shape, str(array.dtype)) for array in arrays]
    return repr((parts, shapes)).encode() + b"".join(array.tobytes() for array in arrays)


def _arrays(reference: Reference) -> "dict[str, Array]":
    import numpy as np

    arrays = {f"state-{u}-{v}": a for u, state in enumerate(reference.states) for v, a in enumerate(state)}
    arrays |= {f"trusted-{w}": mask for w, mask in enumerate(reference.trusted)}
    return arrays | {"noise": np.array(reference.noise)}


def _compute(training: Training, initial: Sequence[VariableState]) -> Reference:
    """Run once as it is, and again from perturbed weights to learn what rounding alone can do."""
    import numpy as np
    import tensorflow as tf

    generator = np.random.default_rng(training.request.seed)
    with tf.device(training.devices.reference or training.devices.names[0]):
        device = SingleDevice(training)
        exact = _run(training, device, [state.copies[0] for state in initial])
        perturbed = []
        for _ in range(PERTURBED_RUNS):
            start = [perturbed_start(state, training.cell.precision, generator) for state in initial]
            perturbed.append(_run(training, device, start))
    trusted = trusted_elements(exact, perturbed)
    noise = [noise_after(update, initial, exact, perturbed, trusted) for update in range(len(exact.states))]
    return Reference(exact.states, noise, trusted)


def _run(training: Training, device: SingleDevice, start: "Sequence[Array]") -> ReferenceRun:
    run, own = ReferenceRun([], []), device.start(start)
    for batch in training.batches:
        shares = device.shares(batch, own)
        run.gradients.append([gradient.numpy() for gradient in device.apply(shares)])
        # A model that saw the whole batch at once has the same untrained state on every replica.
        own = [share.statistics for share in shares] * (len(own) // len(shares))
        run.states.append(device.state(own))
    return run
