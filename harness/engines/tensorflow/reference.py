"""The reference: the same updates on one device, eagerly, without tf.distribute.

Each replica's share of the global batch is run by itself and the gradients are added, because batch
normalisation and dropout work on a replica's share; for layers without such state this is the update
on the whole global batch.

How closely another order of additions can be expected to agree differs by variable: the bias of a
convolution before batch normalisation has no true gradient at all, so what Adam does with it is
rounding noise. That is measured, not guessed: the reference is run again from weights perturbed by a
few units in the last place, and what changes then is the noise that the comparison allows for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.training import Training, build_model
from harness.protocol.state import Reference, VariableState
from harness.trial.array_cache import kept

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

PERTURBED_RUNS = 2
ULPS = {"float32": 8 * 2**-23, "mixed_bfloat16": 2**-8, "mixed_float16": 2**-10}
"""Relative perturbation of the weights, by precision: a few units in the last place of what is computed in."""
SIGNAL = 10
"""A gradient element is trusted when it is this many times the noise of its variable's gradient."""


@dataclass(frozen=True)
class _Run:
    states: "list[list[Array]]"
    gradients: "list[list[Array]]"


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
        model, optimizer = build_model(training.workload, training.cell, training.classes, training.request.seed)
        exact = _run(training, model, optimizer, [state.copies[0] for state in initial])
        perturbed = []
        for _ in range(PERTURBED_RUNS):
            start = [_perturbed(state, training.cell.precision, generator) for state in initial]
            perturbed.append(_run(training, model, optimizer, start))
    trusted = _trusted(exact, perturbed)
    noise = [_noise_after(update, initial, exact, perturbed, trusted) for update in range(len(exact.states))]
    return Reference(exact.states, noise, trusted)


def _run(training: Training, model: Any, optimizer: Any, start: "list[Array]") -> _Run:
    import numpy as np

    run = _Run([], [])
    for variable, value in zip([*model.variables, *optimizer.variables], start, strict=True):
        variable.assign(value)
    positions = [i for i, state in enumerate(capture(model, optimizer)) if state.kind == "statistic"]
    n = training.cell.replicas_per_update
    own = [[variable.numpy() for variable in model.non_trainable_variables] for _ in range(n)]
    for x, y in training.batches:
        gradients, own = _one_update(training, model, optimizer, (x, y), own)
        run.gradients.append(gradients)
        state = [variable.copies[0] for variable in capture(model, optimizer)]
        for v, position in enumerate(positions):
            state[position] = np.stack([statistics[v] for statistics in own])
        run.states.append(state)
    return run


def _perturbed(state: VariableState, precision: str, generator: "np.random.Generator") -> "Array":
    value = state.copies[0]
    if state.kind != "weight":
        return value
    factors = 1 + ULPS[precision] * generator.choice([-1.0, 1.0], size=value.shape)
    moved: Array = (value * factors).astype(value.dtype)
    return moved


def _trusted(exact: _Run, perturbed: list[_Run]) -> "list[Array]":
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


def _noise_after(
    update: int, initial: Sequence[VariableState], exact: _Run, perturbed: list[_Run], trusted: "list[Array]"
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


def _one_update(
    training: Training, model: Any, optimizer: Any, batch: "tuple[Array, Array]", own: "list[list[Array]]"
) -> "tuple[list[Array], list[list[Array]]]":
    """One update on a global batch, share by share; returns summed gradients and each share's statistics.

    `own[i]` is replica i's untrained state, which goes on from its own share alone. A model with
    synchronised batch normalisation sees the whole batch at once.
    """
    import tensorflow as tf

    x, y = batch
    whole = any(getattr(layer, "synchronized", False) for layer in model._flatten_layers())
    shares = 1 if whole else training.cell.replicas_per_update
    size = len(x) // shares

    def gradients_of(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            examples = training.loss(labels, model(images, training=True))
            loss = tf.reduce_sum(examples) / training.cell.global_batch_size
            if model.losses:
                loss += tf.add_n(model.losses) / shares
            scaled = optimizer.scale_loss(loss)
        return [tf.convert_to_tensor(g) for g in tape.gradient(scaled, model.trainable_variables)]

    if training.cell.xla and any("seed_generator" in variable.path for variable in model.variables):
        # XLA draws other random numbers from the same seed, so a model with dropout is compiled here too.
        gradients_of = tf.function(gradients_of, jit_compile=True, autograph=False)
    summed: list[Any] = []
    after = []
    for i in range(shares):
        share = slice(i * size, (i + 1) * size)
        for variable, value in zip(model.non_trainable_variables, own[i], strict=True):
            variable.assign(value)
        gradients = gradients_of(tf.constant(x[share]), tf.constant(y[share]))
        summed = [a + b for a, b in zip(summed, gradients, strict=True)] if summed else gradients
        after.append([variable.numpy() for variable in model.non_trainable_variables])
    optimizer.apply_gradients(zip(summed, model.trainable_variables, strict=True))
    return [gradient.numpy() for gradient in summed], after * (len(own) // shares)
