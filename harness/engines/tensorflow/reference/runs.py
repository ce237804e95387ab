"""Runs of the reference, and whether a model that its function builds again is the same model."""

import dataclasses
from collections.abc import Sequence

from harness.engines.tensorflow.reference.sight import SummedGradients, summed_over
from harness.engines.tensorflow.reference.update import ANOTHER_MODEL, SingleDevice
from harness.engines.tensorflow.structures import Batch
from harness.errors import Unprovable
from harness.protocol.state import Reference, VariableState
from harness.trial.judgement import check_mean_losses, check_update
from harness.trial.noise import PerturbedRun, ReferenceRun, beyond_rounding
from harness.trial.sign_of_life import sign_of_life


def run_updates(
    device: SingleDevice,
    initial: Sequence[VariableState],
    batches: Sequence[Batch],
    run: ReferenceRun | PerturbedRun,
    updates: list[SummedGradients] | None = None,
    arithmetic: str = "float32",
) -> None:
    """Updates on `batches` from the values that `run` starts from, which it takes in.

    `updates` takes in what faults are tried with. `arithmetic` is what the shares were computed in.
    """
    values = run.start
    untrained = [state.copies for state in initial if state.kind == "statistic"]
    # Of the replicas of other processes nothing is known here; they begin alike, and this process compares its own.
    own = [[copies[min(r, len(copies) - 1)] for copies in untrained] for r in range(len(device.start(values)))]
    for batch in batches:
        sign_of_life()
        shares = device.shares(batch, own)
        gradients = device.apply(shares)
        if updates is not None:
            updates.append(summed_over(values, shares, gradients))
            if isinstance(run, ReferenceRun) and len(shares) > 1:
                pairs = zip(gradients, device.sizes(shares), strict=True)
                run.beyond.append([beyond_rounding(gradient, size, arithmetic) for gradient, size in pairs])
        own, loss = [share.statistics for share in shares], sum(float(share.loss) for share in shares)
        del shares  # as large as the model, each
        run.take(device.state(own), gradients, loss)
        if isinstance(run, ReferenceRun):
            values = [v[0] if s.kind == "statistic" else v for v, s in zip(run.states[-1], initial, strict=True)]


def must_be_built_alike(
    again: SingleDevice, initial: Sequence[VariableState], batch: Batch, reference: Reference
) -> None:
    """Raises Unprovable where a model that was built `again` is not the `reference`'s, judged as a step's update is.

    Its weights are set, so what differs is no weight: a number that its function drew from a generator that seeding
    does not reach, of which the step's model has another one, too. With what is no number nothing can be compared.
    """
    import numpy as np

    if any(np.isnan(values.astype(np.float64)).any() for values in reference.states[0]):
        return
    run = ReferenceRun([state.copies[0] for state in initial])
    run_updates(again, initial, [batch], run)
    of_first = dataclasses.replace(reference, losses=reference.losses[:1], loss_noise=reference.loss_noise[:1])
    values = [array if s.kind == "statistic" else [array] for array, s in zip(run.states[0], initial, strict=True)]
    state = [VariableState(s.name, s.kind, tuple(copies)) for s, copies in zip(initial, values, strict=True)]
    if check_update([state], initial, reference).evidence or check_mean_losses(run.losses, of_first):
        raise Unprovable(ANOTHER_MODEL)
