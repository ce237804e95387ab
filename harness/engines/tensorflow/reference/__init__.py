"""The reference: the same updates on one device, without tf.distribute, the first ones eagerly.

Each replica's share of the global batch is run by itself and the gradients are added, because batch
normalisation and dropout work on a replica's share; for layers without such state this is the update
on the whole global batch. Shares meet where replicas exchange something else (`lockstep`).

How closely another order of additions can be expected to agree differs by variable: the bias of a
convolution before batch normalisation has no true gradient at all, so what Adam does with it is
rounding noise. That is measured, not guessed: the reference is run again from weights perturbed by a
few units in the last place, and what changes then is the noise that the comparison allows for.
"""

import dataclasses
import functools
import gc
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.engines.tensorflow.reference.arithmetic import arithmetic_of, coarsest_arithmetic
from harness.engines.tensorflow.reference.own_update import single_device
from harness.engines.tensorflow.reference.replica_context import in_sync
from harness.engines.tensorflow.reference.runs import must_be_built_alike, run_updates
from harness.engines.tensorflow.reference.sight import SummedGradients, faulty_states
from harness.engines.tensorflow.reference.update import SingleDevice
from harness.engines.tensorflow.server_state import FusedOptimizer
from harness.engines.tensorflow.structures import Batch, arrays_in, by_place
from harness.engines.tensorflow.training import Training
from harness.errors import Unprovable
from harness.protocol.state import Reference, VariableState
from harness.spec.grouping import ONE_UPDATE, apart
from harness.trial.judgement import FEW, STATE_TOLERANCE, sight_of
from harness.trial.noise import PERTURBED_RUNS, PerturbedRun, ReferenceRun, perturbed_start, with_noise
from harness.trial.reference_cache import cached_reference

if TYPE_CHECKING:
    from harness.protocol.state import Array

__all__ = ["arithmetic_of", "continue_reference", "reference_of_each", "run_reference"]

FUSED_OTHERWISE = ("mixed_bfloat16", "mixed_float16")
"""Arithmetics in which a program and eager operations may differ by more than perturbed weights show: seen is the
gradient of a convolution's bias before batch normalisation, which has no true one, a thousand times larger eagerly."""


def run_reference(training: Training, initial: Sequence[VariableState]) -> Reference:
    """Train a second model, started from `initial`, on the gate's batches.

    The result is kept in the run's scratch folder under a hash of all that it depends on: cells that
    differ in strategy or op alone, and every further trial, are held against the same reference.
    """

    def computed() -> Reference:
        [reference] = _compute(training, [(initial, training.batches)])
        if training.workload.input_shape is None:  # a user's own model
            _must_be_built_alike(training, initial, reference)
        return reference

    request = training.request
    return cached_reference(request.scratch, _key(training, initial), computed, request.others_limit_s)


def reference_of_each(training: Training, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
    """The updates on the gate's batches one by one, each from the state that the step itself had before it, and so kept
    for nobody else; with so many perturbed runs."""
    spans = [(before, [batch]) for before, batch in zip(befores, training.batches, strict=True)]
    return _compute(training, spans, runs=runs)


def continue_reference(
    training: Training, before: Sequence[VariableState], batch: Batch, fault: str | None
) -> Reference:
    """One update on a late batch from the state `before`; its sight is of one `fault`, or of all where it is None.

    Nobody else will come to that state, so it is not kept; the model is built anew, since what an own optimizer or
    layer counts in Python would age in one that is used again as it ages in the step. Its shares are traced, which is
    half the work: that the step's program does what it does eagerly is shown by the first updates, and it is the same
    program. TPUs would compile it with XLA. Unprovable, with the reason, where there is none.
    """
    if training.unprovable:
        raise Unprovable(training.unprovable[0])
    [reference] = _compute(training, [(before, [batch])], fault, traced=training.cell.device != "tpu")
    return reference


def _key(training: Training, initial: Sequence[VariableState]) -> bytes:
    """The initial state, the batches and the places of their parts, what layers may ask the strategy, and all of the
    cell but what makes no other update."""
    kernels = isinstance(training.optimizer, FusedOptimizer)
    parts = (apart(training.cell, ONE_UPDATE), training.cell.replicas_per_update, kernels, in_sync(training))
    given = [a for batch in training.batches for part in batch for a in arrays_in(part)]
    arrays = [variable.copies[0] for variable in initial] + given
    shapes = [(array.shape, str(array.dtype)) for array in arrays]
    places = [[*by_place(part)] for part in training.batches[0] if not hasattr(part, "dtype")]
    key = hashlib.sha256(repr((parts, shapes, places)).encode())
    for array in arrays:
        key.update(array.tobytes())  # one at a time: all together are as large as the trained state
    return key.digest()


def _compute(
    training: Training,
    spans: Sequence[tuple[Sequence[VariableState], Sequence[Batch]]],
    fault: str | None = None,
    traced: bool = False,
    runs: int = PERTURBED_RUNS,
) -> list[Reference]:
    """Of each span, which is a state and the batches of the updates from there on: run once as it is, and again from
    perturbed weights to learn what rounding alone can do.

    In half precision the last of those is a program: TensorFlow fuses operations there, between which eager ones round.
    So it is of several spans: networks that amplify what rounding does amplify that, too. Where shares exchange
    something they cannot be one, and are programs once more by themselves: an eager BiasAddGrad adds up in bfloat16, an
    error that perturbed runs make alike and the step does not (seen: 40 % of the bias of a convolution before
    synchronised batch normalisation).
    """
    import numpy as np
    import tensorflow as tf

    generator = np.random.default_rng(training.request.seed)
    arithmetic = coarsest_arithmetic(training)
    fused = (arithmetic in FUSED_OTHERWISE or len(spans) > 1) and training.cell.device != "tpu"
    with tf.device(training.devices.reference or training.devices.names[0]):
        device = single_device(training, traced)
        if not traced:
            _settle_scale(device, training, *spans[0])
        updates: list[SummedGradients] = []
        exact = [ReferenceRun(_first_copies(initial)) for initial, _ in spans]
        for (initial, given), of in zip(spans, exact, strict=True):
            run_updates(device, initial, given, of, updates, arithmetic)
        perturbed: list[list[PerturbedRun]] = [[] for _ in spans]
        for number in range(1, runs + 1):
            if fused and number == runs:
                device.trace()
            for (initial, given), of, kept in zip(spans, exact, perturbed, strict=True):
                kept.append(PerturbedRun(of, initial, perturbed_start(initial, arithmetic, generator)))
                run_updates(device, initial, given, kept[-1])
        references, done = [], 0
        for (initial, given), of, kept in zip(spans, exact, perturbed, strict=True):
            done += len(given)
            otherwise = device.as_programs(of.start, given[0]) if fused and not device.is_program else None
            reference = with_noise(of, kept, initial, arithmetic, otherwise, FEW if len(spans) > 1 else 0.0)
            faulty = faulty_states(device, updates[:done], fault)
            references.append(dataclasses.replace(reference, sight=sight_of(faulty, initial, reference)))
        return references


def _settle_scale(
    device: SingleDevice, training: Training, initial: Sequence[VariableState], batches: Sequence[Batch]
) -> None:
    """As SingleDevice.settle_scale, at the first update. Where that cannot be known no late update is proved either."""
    import numpy as np

    arithmetic, generator = coarsest_arithmetic(training), np.random.default_rng(training.request.seed)
    moved = functools.partial(perturbed_start, initial, arithmetic, generator)
    try:
        device.settle_scale(_first_copies(initial), moved, batches[0], STATE_TOLERANCE[arithmetic])
    except Unprovable as error:
        training.unprovable.append(str(error))
        raise


def _first_copies(initial: Sequence[VariableState]) -> "list[Array]":
    return [state.copies[0] for state in initial]


def _must_be_built_alike(training: Training, initial: Sequence[VariableState], reference: Reference) -> None:
    """As `runs.must_be_built_alike`; no late update of such a training is proved either."""
    import tensorflow as tf

    gc.collect()  # a third model has room where the second was: a model lies in cycles
    try:
        with tf.device(training.devices.reference or training.devices.names[0]):
            again = single_device(training)
            _settle_scale(again, training, initial, training.batches)
            must_be_built_alike(again, initial, training.batches[0], reference)
    except Unprovable as error:
        training.unprovable.append(str(error))
        raise
