"""The reference: the same updates on one device, each replica's share of the batch by itself.

Gradients come of a program of the engine that knows no other replica and no optimizer; they are added up and applied in
NumPy, in double precision. How closely the order of additions lets the two agree is measured, not guessed, by running
again from weights that are moved by a few units in the last place (`harness.trial.noise`).
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.protocol.state import Reference, VariableState
from harness.trial.judgement import FEW, faults_of, sight_of
from harness.trial.noise import (
    PERTURBED_RUNS,
    PerturbedRun,
    ReferenceRun,
    beyond_rounding,
    perturbed_start,
    with_noise,
)
from harness.trial.same_work.optimizers import Optimizer
from harness.trial.same_work.state import Pass, State, StateOrder
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    from harness.protocol.state import Array

    Batch = tuple[Array, Array]
    Arrays = list[Array]

FLOAT32 = "float32"


class Sums(NamedTuple):
    """The gradients of one update, by weight: of all shares, and without the last one's."""

    whole: "Arrays"
    without_last: "Arrays"


class ShareByShare(ABC):
    """Runs updates of `replicas` replicas on one device. Arrays are in the order of `layout`."""

    def __init__(self, layout: StateOrder, optimizer: Optimizer, replicas: int, arithmetic: str = FLOAT32) -> None:
        self._layout, self._optimizer, self._replicas = layout, optimizer, replicas
        self._arithmetic = arithmetic
        """The narrowest on the way of a gradient, a key of `harness.trial.judgement.STATE_TOLERANCE`."""

    @abstractmethod
    def shares(self, state: State, batch: "Batch") -> list[Pass]:
        """Forward and backward of each replica's share, from weights and each shown replica's own statistics.

        The loss of a share is the part that its examples have in the mean over the batch.
        """

    def _of_each(self, state: State, batch: "Batch") -> "Iterator[tuple[dict[str, Array], slice]]":
        """Of each replica the statistics that it has itself, or the first one's where it shows none, and its share."""
        size = len(batch[1]) // self._replicas
        for i in range(self._replicas):
            own = {name: copies[min(i, len(copies) - 1)] for name, copies in state.statistics.items()}
            yield own, slice(i * size, (i + 1) * size)

    def reference(
        self,
        initial: Sequence[VariableState],
        batches: "Sequence[Batch]",
        seed: int,
        sums: list[Sums] | None = None,
        runs: int = PERTURBED_RUNS,
    ) -> Reference:
        """The updates on `batches` from the state `initial`, what rounding can do to them, and what faults would.

        With `sums`, those of the updates before them, which take in theirs, each update is held by itself.
        """
        import numpy as np

        generator = np.random.default_rng(seed)
        known: list[Sums] = [] if sums is None else sums
        exact = ReferenceRun(self._with_every_copy([state.copies[0] for state in initial], initial))
        self._run(exact, batches, known)
        moved = (perturbed_start(initial, self._arithmetic, generator) for _ in range(runs))
        perturbed = [PerturbedRun(exact, initial, self._with_every_copy(start, initial)) for start in moved]
        for run in perturbed:
            self._run(run, batches)
        reference = with_noise(exact, perturbed, initial, self._arithmetic, few=0.0 if sums is None else FEW)
        before = exact.states[-2] if len(batches) > 1 else exact.start
        own = self._layout.state(exact.states[-1]).statistics
        earlier = known[-2].whole if len(known) > 1 else None
        faults = faults_of(known[-1].whole, known[-1].without_last, earlier, self._replicas, _times)
        wrong = ((name, self._applied(before, gradients, own)) for name, gradients in faults)
        return replace(reference, sight=sight_of(wrong, initial, reference))

    def _with_every_copy(self, values: "Arrays", initial: Sequence[VariableState]) -> "Arrays":
        """The values with the statistics of every replica that is shown, along a leading axis."""
        import numpy as np

        return [
            np.stack(state.copies) if state.kind == "statistic" else value
            for value, state in zip(values, initial, strict=True)
        ]

    def _run(
        self, run: ReferenceRun | PerturbedRun, batches: "Sequence[Batch]", sums: list[Sums] | None = None
    ) -> None:
        """Updates from the values that `run` starts from, which it takes in; `sums` takes in what faults are tried
        with."""
        import numpy as np

        values = run.start
        for batch in batches:
            sign_of_life()
            state = self._layout.state(values)
            shares = self.shares(state, batch)
            of_shares = ([np.asarray(share.gradients[name], np.float64) for share in shares] for name in self._names)
            parts = [np.stack(gradients) for gradients in of_shares]
            whole = [part.sum(axis=0) for part in parts]
            if sums is not None:
                sums.append(Sums(whole, [part[:-1].sum(axis=0) for part in parts]))
            if isinstance(run, ReferenceRun) and self._replicas > 1:
                sizes = (np.abs(part).sum(axis=0) for part in parts)
                run.beyond.append([*map(functools.partial(beyond_rounding, arithmetic=self._arithmetic), whole, sizes)])
            own = {
                name: np.stack([np.asarray(share.statistics[name]) for share in shares[: len(shown)]])
                for name, shown in state.statistics.items()
            }
            values = self._applied(values, whole, own)
            run.take(values, whole, sum(float(share.loss) for share in shares))

    @property
    def _names(self) -> Sequence[str]:
        return self._layout.names

    def _applied(self, values: "Arrays", gradients: "Arrays", own: Mapping[str, Any]) -> "Arrays":
        """One step of the optimizer in double precision, stored as the trained state is; `own` are the statistics."""
        import numpy as np

        state = self._layout.state([value.astype(np.float64) for value in values])
        after = self._optimizer.updated(state, dict(zip(self._names, gradients, strict=True)), dict(own))
        new = (array for _, _, array in self._layout.arrays(after))
        return [np.asarray(array).astype(value.dtype) for array, value in zip(new, values, strict=True)]


def _times(gradients: "Arrays", factor: float) -> "Arrays":
    return [factor * gradient for gradient in gradients]
