"""An engine of your own, complete, and as small as one can be: the mean of random numbers by gradient descent.

    python -m harness sweep --engine benchmarks.own_engine:Means --device thread --strategy none,turns --replicas 1,2 \
        --model mean --data normal --optimizer descent --loop plain --trials 2

`docs/extending.md#an-engine` says what an engine must be able to do.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from harness.protocol.engine import GATE_UPDATES, Ending, KnownStep, Pace, Task
from harness.protocol.messages import Request
from harness.protocol.state import Reference, VariableState
from harness.record.trial import Executed, Resources
from harness.spec.catalogue import Catalogue, CrossDeviceOpTraits, DeviceTraits, StrategyTraits
from harness.trial.ending import plain_ending, refuse_other_axes
from harness.trial.judgement import sight_of
from harness.trial.sums import judge_sums, known_values

NUMBERS, RATE = 1000, 0.1
TAKEN = frozenset(
    {"device", "strategy", "replicas", "batch_size", "batch_scope", "global_batch_size", "cross_device_op"}
    | {"model", "data", "optimizer", "loop", "quantity", "engine"}
)
"""Keys of a cell that this engine knows; any other but at its default is refused."""
Array = NDArray[np.float64]


class Mean:
    """Replicas take parts of each batch and add what they find; each applies the sum to its own copy."""

    least_steps = 1
    ahead = 0
    alone: Callable[[], None] | None = None
    resting = nullcontext
    staleness: dict[int, int] | None = None
    labels = ""

    def __init__(self, request: Request) -> None:
        self._cell = request.training
        generator = np.random.default_rng(request.seed)
        self._batches = generator.normal(size=(GATE_UPDATES, self._cell.global_batch_size, NUMBERS))
        self._copies = [np.zeros(NUMBERS) for _ in range(self._cell.replicas)]
        self._updates = 0
        self._in_turn = cycle(self._batches + 1)

    @property
    def resources(self) -> Resources:
        names = [f"turn:{replica}" for replica in range(self._cell.replicas)]
        return Resources(logical_devices=names, shared=len(names) > 1)

    def check_reduction(self) -> str | None:
        weights, patterns = known_values(self._cell.replicas)
        totals = [sum(weight * pattern for weight in weights) for pattern in patterns]
        return judge_sums([[total] * self._cell.replicas for total in totals], patterns, weights)

    def state(self) -> list[VariableState]:
        return [VariableState("mean", "weight", tuple(copy.copy() for copy in self._copies))]

    def updates(self) -> int:
        return self._updates

    def due(self, steps: int) -> tuple[int, dict[str, str]]:
        """One a step."""
        return steps, {}

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        """The same on whole batches."""
        return self._reference(initial, self._batches)

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        """Each of those by itself."""
        return [self._reference(before, batch[None]) for before, batch in zip(befores, self._batches, strict=True)]

    def one_more(self) -> KnownStep:
        """On numbers that are one larger: there is a gradient however long it has trained."""
        self._late = next(self._in_turn)
        return KnownStep(self._step(self._late), same_program=True)

    def reference_of_one_more(self, before: Sequence[VariableState]) -> Reference:
        """The same on the whole of it."""
        return self._reference(before, self._late[None])

    def _reference(self, initial: Sequence[VariableState], batches: Array) -> Reference:
        mean, states, losses = initial[0].copies[0], [], []
        for batch in batches:
            before, gradient = mean, len(batch) * (mean - batch.mean(axis=0))
            mean = before - RATE * gradient / len(batch)
            states.append([mean])
            losses.append(float(np.square(gradient).mean()))
        right = Reference(states, [[0.0]] * len(states), [np.ones(NUMBERS, dtype=bool)], losses, [0.0] * len(states))
        wrong = {"doubled": [2 * mean - before]}  # what such a fault in the last update would leave behind
        if (replicas := self._cell.replicas) > 1:
            last = np.split(batches[-1], replicas)[-1]
            wrong["averaged"] = [before + (mean - before) / replicas]
            wrong["missing"] = [mean + RATE * (before - last).sum(axis=0) / len(batches[-1])]
        return replace(right, sight=sight_of(wrong.items(), initial, right))

    def run(self, pace: Pace) -> None:
        while steps := pace.begin():
            for _ in range(steps):
                loss = self._step(self._batches[self._updates % GATE_UPDATES])
            pace.end(loss)

    def _step(self, batch: Array) -> float:
        parts = np.split(batch, self._cell.replicas)
        total = sum((copy - part).sum(axis=0) for copy, part in zip(self._copies, parts, strict=True))
        for copy in self._copies:
            copy -= RATE * total / len(batch)
        self._updates += 1
        return float(np.square(total).mean())

    def synchronise(self) -> None:
        """A step is done when it returns."""

    def agree(self, value: float) -> float:
        """There is one process."""
        return value

    def executed(self) -> Executed:
        """One sum of as many parts as there are replicas."""
        return Executed(operations={"sum": self._cell.replicas})

    def tracer(self, leads: bool) -> None:
        """It cannot be profiled."""

    def check_input(self) -> dict[str, str | None]:
        """It trains on the same few batches over and over."""
        return {}

    def forget_peak(self) -> None:
        """It has no accelerator."""

    def peak_device_memory_bytes(self) -> int | None:
        return None


class Means:
    name = "means"
    title = "Means"
    clusters = None

    def catalogue(self) -> Catalogue:
        """The names of every axis; `none` is the base that speed-ups are of."""
        return Catalogue(
            devices={"thread": DeviceTraits("thread", "the thread that the trial has", on_processors=True)},
            strategies={
                "none": StrategyTraits("none", "one turn", max_replicas=1),
                "turns": StrategyTraits("turns", "a turn a replica"),
            },
            cross_device_ops={"auto": CrossDeviceOpTraits("auto", "a sum")},
            models={"mean": "a mean"}, data={"normal": "random numbers"},
            optimizers={"descent": "gradient descent"}, loops={"plain": "a loop in Python"},
            taken={"training": TAKEN},
        )  # fmt: skip

    def preload(self) -> dict[str, str]:
        return {"numpy": np.__version__}

    def on_host(self, request: Request) -> Request:
        return request

    def classify(self, error: Exception) -> Ending:
        return plain_ending(error)

    def trainer(self, request: Request) -> Mean:
        refuse_other_axes(request.cell, TAKEN, "a mean")
        return Mean(request)

    def tasks(self) -> Mapping[str, Task]:
        return {}
