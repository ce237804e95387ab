"""The reference: the same updates on one device, eagerly, without tf.distribute.

Each replica's share of the global batch is run by itself and the gradients are added, because batch
normalisation and dropout work on a replica's share; for layers without such state this is the update
on the whole global batch.
"""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.trial.state import VariableState, capture
from harness.trial.training import Training, build_model

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Reference:
    """State after the updates, and the smallest gradient magnitude over the updates.

    `gradients` has, for each trainable variable in order, an array of |g| (the least over the
    updates): where it drowns in rounding, an adaptive optimizer's step is noise and proves nothing.
    """

    state: list[VariableState]
    gradients: "list[np.ndarray[Any, Any]]"


def run_reference(training: Training, initial: list[VariableState]) -> Reference:
    """Train a second model, started from `initial`, on the gate's batches.

    The result is kept in the run's scratch folder under a hash of all that it depends on: cells that
    differ in strategy or op alone, and every further trial, are held against the same reference.
    """
    folder = training.request.scratch
    kept = Path(folder) / f"reference-{_key(training, initial)}.npz" if folder else None
    if kept is not None and kept.exists():
        return _load(kept, initial)
    reference = _compute(training, initial)
    if kept is not None:
        _save(kept, reference)
    return reference


def _key(training: Training, initial: list[VariableState]) -> str:
    """Hash of the initial state, the batches, and the keys of the cell that bear on a single device."""
    cell = training.cell
    parts = (cell.model, cell.optimizer, cell.precision, cell.device, cell.replicas_in_sync)
    digest = hashlib.sha256(repr(parts).encode())
    for array in [variable.copies[0] for variable in initial] + [a for batch in training.batches for a in batch]:
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:24]


def _save(kept: Path, reference: Reference) -> None:
    import numpy as np

    arrays = {f"state{i}": state.copies[0] for i, state in enumerate(reference.state)}
    arrays |= {f"gradient{i}": gradient for i, gradient in enumerate(reference.gradients)}
    scratch = kept.with_suffix(f".{os.getpid()}.npz")
    np.savez(scratch, **arrays)
    scratch.rename(kept)


def _load(kept: Path, initial: list[VariableState]) -> Reference:
    import numpy as np

    with np.load(kept, allow_pickle=False) as arrays:
        state = [replace(start, copies=(arrays[f"state{i}"],)) for i, start in enumerate(initial)]
        gradients = [arrays[f"gradient{i}"] for i in range(sum(1 for name in arrays if name.startswith("gradient")))]
    return Reference(state, gradients)


def _compute(training: Training, initial: list[VariableState]) -> Reference:
    import numpy as np
    import tensorflow as tf

    cell = training.cell
    least: list[Any] = []
    with tf.device(training.devices.names[0]):
        model, optimizer = build_model(training.workload, cell, training.classes, training.request.seed)
        for variable, start in zip([*model.variables, *optimizer.variables], initial, strict=True):
            variable.assign(start.copies[0])
        for x, y in training.batches:
            sizes = [np.abs(gradient) for gradient in _one_update(training, model, optimizer, x, y)]
            least = [np.minimum(a, b) for a, b in zip(least, sizes, strict=True)] if least else sizes
    return Reference(capture(model, optimizer), least)


def _one_update(training: Training, model: Any, optimizer: Any, x: Any, y: Any) -> "list[Any]":
    """One update on the global batch (x, y), share by share; returns the summed gradients."""
    import numpy as np
    import tensorflow as tf

    n, size = training.cell.replicas_in_sync, training.cell.replica_batch_size
    before = [variable.numpy() for variable in model.non_trainable_variables]
    summed: list[Any] = []
    after = []
    for i in range(n):
        share = slice(i * size, (i + 1) * size)
        for variable, value in zip(model.non_trainable_variables, before, strict=True):
            variable.assign(value)
        with tf.GradientTape() as tape:
            examples = training.loss(tf.constant(y[share]), model(tf.constant(x[share]), training=True))
            loss = tf.reduce_sum(examples) / training.cell.global_batch_size
            if model.losses:
                loss += tf.add_n(model.losses) / n
            scaled = optimizer.scale_loss(loss)
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(scaled, model.trainable_variables)]
        summed = [a + b for a, b in zip(summed, gradients, strict=True)] if summed else gradients
        after.append([variable.numpy() for variable in model.non_trainable_variables])
    for position, variable in enumerate(model.non_trainable_variables):
        values = [share_state[position] for share_state in after]
        floating = np.issubdtype(values[0].dtype, np.floating)
        variable.assign(np.mean(values, axis=0).astype(values[0].dtype) if floating else values[0])
    optimizer.apply_gradients(zip(summed, model.trainable_variables, strict=True))
    return [gradient.numpy() for gradient in summed]
