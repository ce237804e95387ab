"""The reference: the same updates on one device, without a mesh, each replica's share of the batch by itself.

Gradients come of a program of their own, which knows no other device and no optimizer; they are added up and applied
in NumPy, in double precision. How closely the order of additions lets the two agree is measured, not guessed, by
running again from weights that are moved by a few units in the last place (`harness.trial.noise`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.engines.jax.loops.base import Work
from harness.engines.jax.state import Layout
from harness.protocol.state import Reference, VariableState
from harness.trial.judgement import sight_of
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


class SingleDevice:
    """Runs updates of `work` on its first device. Arrays are in the order of `layout`."""

    def __init__(self, work: Work, layout: Layout) -> None:
        import jax

        self._work, self._layout = work, layout
        self._gradients_of = jax.jit(work.gradients)

    def reference(self, initial: Sequence[VariableState], batches: "Sequence[Batch]", seed: int) -> Reference:
        """The updates on `batches` from the state `initial`, what rounding can do to them, and what faults would."""
        import numpy as np

        generator = np.random.default_rng(seed)
        sums: list[Sums] = []
        exact = self._run([state.copies[0] for state in initial], batches, sums)
        starts = [perturbed_start(initial, ARITHMETIC, generator) for _ in range(PERTURBED_RUNS)]
        reference = with_noise(exact, [self._run(start, batches) for start in starts], initial, ARITHMETIC)
        before = exact.states[-2] if len(batches) > 1 else exact.start
        wrong = {name: self._applied(before, gradients) for name, gradients in self._faults(sums)}
        return replace(reference, sight=sight_of(wrong, initial, reference))

    def _run(self, start: "Arrays", batches: "Sequence[Batch]", sums: list[Sums] | None = None) -> ReferenceRun:
        """Updates from the values `start`; `sums` takes in what faults are tried with."""
        import numpy as np

        run, values = ReferenceRun(start), start
        for batch in batches:
            losses, shares = self._shares(values, batch)
            parts = [np.stack(of_weight) for of_weight in zip(*shares, strict=True)]
            whole = [part.sum(axis=0) for part in parts]
            if sums is not None:
                sums.append(Sums(whole, [part[:-1].sum(axis=0) for part in parts]))
                run.sizes.append([np.abs(part).sum(axis=0) for part in parts])
            values = self._applied(values, whole)
            run.gradients.append(whole)
            run.states.append(values)
            run.losses.append(sum(losses))
        return run

    def _shares(self, values: "Arrays", batch: "Batch") -> "tuple[list[float], list[Arrays]]":
        """Of each replica's share its part of the mean loss, and its gradients in double precision."""
        import jax
        import numpy as np

        device, names = self._work.devices[0], self._layout.names
        weights = jax.device_put({name: np.float32(value) for name, value in zip(names, values, strict=False)}, device)
        losses, shares = [], []
        for x, y in zip(*(np.split(part, len(self._work.devices)) for part in batch), strict=True):
            loss, gradients = self._gradients_of(weights, *jax.device_put((x, y), device))
            losses.append(float(loss))
            shares.append([np.asarray(gradients[name], np.float64) for name in names])
        return losses, shares

    def _applied(self, values: "Arrays", gradients: "Arrays") -> "Arrays":
        """One step of the optimizer in double precision, stored as the trained state is."""
        import numpy as np

        state = self._layout.state([value.astype(np.float64) for value in values])
        after = self._work.updated(state, dict(zip(self._layout.names, gradients, strict=True)))
        new = (array for _, _, array in self._layout.arrays(after))
        return [np.asarray(array).astype(value.dtype) for array, value in zip(new, values, strict=True)]

    def _faults(self, sums: Sequence[Sums]) -> "Iterator[tuple[str, Arrays]]":
        """The faults that this cell can have, and the gradients that the optimizer would get of the last update."""
        last, replicas = sums[-1], len(self._work.devices)
        if replicas > 1:
            yield "missing", last.without_last
            yield "averaged", [gradient / replicas for gradient in last.whole]
        yield "doubled", [2 * gradient for gradient in last.whole]
        if len(sums) > 1:
            yield "delayed", sums[-2].whole
