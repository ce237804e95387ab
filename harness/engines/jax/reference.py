"""The reference: the same updates on one device, without a mesh, each replica's share of the batch by itself.

Gradients come of a program of their own, which knows no other device and no optimizer; they are added up and applied
in NumPy, in double precision. How closely the order of additions lets the two agree is measured, not guessed, by
running again from weights that are moved by a few units in the last place (`harness.trial.noise`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.engines.jax.loops.base import Pass, TrainedModel
from harness.engines.jax.state import StateOrder
from harness.protocol.state import Reference, VariableState
from harness.trial.judgement import faults_of, sight_of
from harness.trial.noise import PERTURBED_RUNS, ReferenceRun, perturbed_start, with_noise

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Batch = tuple[Array, Array]
    Arrays = list[Array]

ARITHMETIC = "float32"


class Sums(NamedTuple):
    """The gradients of one update, by weight: of all shares, and without the last one's."""

    whole: "Arrays"
    without_last: "Arrays"


class ShareByShare:
    """Runs updates of `trained` on its first device. Arrays are in the order of `layout`."""

    def __init__(self, trained: TrainedModel, layout: StateOrder) -> None:
        import jax

        self._trained, self._layout = trained, layout
        self._passed = jax.jit(trained.passed)

    def reference(self, initial: Sequence[VariableState], batches: "Sequence[Batch]", seed: int) -> Reference:
        """The updates on `batches` from the state `initial`, what rounding can do to them, and what faults would."""
        import numpy as np

        generator = np.random.default_rng(seed)
        sums: list[Sums] = []
        exact = self._run(self._with_every_copy([state.copies[0] for state in initial], initial), batches, sums)
        moved = (perturbed_start(initial, ARITHMETIC, generator) for _ in range(PERTURBED_RUNS))
        runs = [self._run(self._with_every_copy(start, initial), batches) for start in moved]
        reference = with_noise(exact, runs, initial, ARITHMETIC)
        before = exact.states[-2] if len(batches) > 1 else exact.start
        own = self._layout.state(exact.states[-1]).statistics
        earlier = sums[-2].whole if len(sums) > 1 else None
        faults = faults_of(sums[-1].whole, sums[-1].without_last, earlier, len(self._trained.devices), _times)
        wrong = {name: self._applied(before, gradients, own) for name, gradients in faults}
        return replace(reference, sight=sight_of(wrong, initial, reference))

    def _with_every_copy(self, values: "Arrays", initial: Sequence[VariableState]) -> "Arrays":
        """The values with the statistics of every replica, along a leading axis."""
        import numpy as np

        return [
            np.stack(state.copies) if state.kind == "statistic" else value
            for value, state in zip(values, initial, strict=True)
        ]

    def _run(self, start: "Arrays", batches: "Sequence[Batch]", sums: list[Sums] | None = None) -> ReferenceRun:
        """Updates from the values `start`; `sums` takes in what faults are tried with."""
        import numpy as np

        run, values = ReferenceRun(start), start
        for batch in batches:
            shares = self._shares(values, batch)
            of_shares = ([np.asarray(share.gradients[name], np.float64) for share in shares] for name in self._names)
            parts = [np.stack(gradients) for gradients in of_shares]
            whole = [part.sum(axis=0) for part in parts]
            if sums is not None:
                sums.append(Sums(whole, [part[:-1].sum(axis=0) for part in parts]))
                run.sizes.append([np.abs(part).sum(axis=0) for part in parts])
            own = {
                name: np.stack([np.asarray(share.statistics[name]) for share in shares])
                for name in self._layout.statistics
            }
            values = self._applied(values, whole, own)
            run.gradients.append(whole)
            run.states.append(values)
            run.losses.append(sum(float(share.loss) for share in shares))
        return run

    @property
    def _names(self) -> Sequence[str]:
        return self._layout.names

    def _shares(self, values: "Arrays", batch: "Batch") -> list[Pass]:
        """Forward and backward of each replica's share.

        Where statistics are of the whole batch every pass is over all of it, and the share's examples alone count.
        """
        import jax
        import numpy as np

        replicas, device = len(self._trained.devices), self._trained.devices[0]
        state = self._layout.state(values)
        weights = jax.device_put({name: np.float32(value) for name, value in state.weights.items()}, device)
        together = bool(self._layout.statistics) and not self._layout.own
        size = len(batch[1]) // replicas
        found = []
        for i in range(replicas):
            share = slice(i * size, (i + 1) * size)
            counts = np.zeros(len(batch[1]), np.float32)
            counts[share] = 1
            part = (*batch, counts) if together else (*(values[share] for values in batch), counts[share])
            own = {name: np.float32(copies[i]) for name, copies in state.statistics.items()}
            found.append(self._passed(weights, *jax.device_put((own, *part), device)))
        return found

    def _applied(self, values: "Arrays", gradients: "Arrays", own: Mapping[str, Any]) -> "Arrays":
        """One step of the optimizer in double precision, stored as the trained state is; `own` are the statistics."""
        import numpy as np

        state = self._layout.state([value.astype(np.float64) for value in values])
        after = self._trained.updated(state, dict(zip(self._names, gradients, strict=True)), dict(own))
        new = (array for _, _, array in self._layout.arrays(after))
        return [np.asarray(array).astype(value.dtype) for array, value in zip(new, values, strict=True)]


def _times(gradients: "Arrays", factor: float) -> "Arrays":
    return [factor * gradient for gradient in gradients]
