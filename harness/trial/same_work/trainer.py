"""What trainers of the same work are alike in: how they are proved, and what they are not asked."""

import functools
import hashlib
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from harness.errors import Unsupported
from harness.protocol.engine import KnownStep, Tracer
from harness.protocol.messages import Request
from harness.protocol.state import Reference, VariableState
from harness.record.trial import Resources
from harness.trial.delay import SLOW_WORKER, WORKER_DELAY, WorkerDelay
from harness.trial.ending import refuse_other_axes
from harness.trial.reference_cache import cached_reference
from harness.trial.same_work.architectures import architectures
from harness.trial.same_work.batches import Data, Placed
from harness.trial.same_work.catalogue import AXES_OF_TRAININGS, REFUSED
from harness.trial.same_work.fed import check_input
from harness.trial.same_work.reference import FLOAT32, ShareByShare, Sums
from harness.trial.sums import judge_sums, known_values

if TYPE_CHECKING:
    from harness.protocol.state import Array
    from harness.trial.same_work.reference import Batch


class SameWorkTrainer(ABC):
    """Of a trainer (`harness.protocol.engine.Trainer`) what follows from its batches and its reference by shares."""

    least_steps = 1
    staleness: dict[int, int] | None = None
    resting: Callable[[], AbstractContextManager[object]] = nullcontext
    _request: Request
    _data: Data
    _late: "tuple[Array, Array]"
    """The global batch of the last `one_more`."""

    @property
    def ahead(self) -> int:
        """What the cell asks for."""
        return self._data.ahead

    def _fed(self, place: "Callable[[Batch], Placed]") -> Iterator[Placed]:
        """The batches that a loop takes one by one before its steps."""
        return self._planted(self._data.batches(place))

    def _planted(self, batches: Iterator[Placed]) -> Iterator[Placed]:
        """The batches; where workers are to be slow they come late."""
        plant = self._request.plant
        return batches if plant is None else self._late_ones(batches, WorkerDelay(plant))

    def _late_ones(self, batches: Iterator[Placed], delay: WorkerDelay) -> Iterator[Placed]:
        """The same; the step before is done when a worker sleeps, or it would sleep beside it."""
        delay.worker, delay.workers = self._rank, self._request.training.workers
        for batch in batches:
            self.synchronise()
            delay.before_step()
            yield batch

    @abstractmethod
    def synchronise(self) -> None:
        """Return when the devices have done all steps."""

    @property
    def labels(self) -> str:
        """Of the batches that the loop was given."""
        return self._data.seen.digest

    def check_input(self) -> dict[str, str | None]:
        """Whether these are those that the seed gives, as far as they are looked at."""
        return check_input(self._request, tuple(self._data.seen.digests))

    @property
    def _rank(self) -> int:
        """The number of this process."""
        member = self._request.member
        return 0 if member is None else member.index

    @property
    def _share(self) -> slice:
        """This process's part of a global batch."""
        cell = self._request.training
        size = cell.global_batch_size // cell.workers
        return slice(self._rank * size, (self._rank + 1) * size)

    def _data_made(self, thread: bool = False) -> Data:
        """The cell's data; placed ahead in a thread of their own, or in between (`Data`)."""
        request, cell = self._request, self._request.training
        shape, size = architectures()[cell.model].input_shape, cell.global_batch_size
        return Data(cell.data, shape, size, request.seed, cell.prefetch, self._share, thread, cell.workers)

    @property
    @abstractmethod
    def _single(self) -> ShareByShare:
        """The reference; made once."""

    @property
    @abstractmethod
    def _remarks(self) -> dict[str, str]:
        """Of this cell, what is not as under TensorFlow, by subject."""

    def due(self, steps: int) -> tuple[int, dict[str, str]]:
        """One a step, and what of the cell is not as under TensorFlow."""
        return steps, self._remarks

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        """In this process alone, by gradients of each share and NumPy; in the first trial of the cell in a run, which
        later ones are held against."""
        request, batches = self._request, self._data.gate
        key = reference_key(request, initial, batches)
        return cached_reference(
            request.scratch, key, lambda: self._single.reference(initial, batches, request.seed), request.others_limit_s
        )

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        """As `reference`, each update by itself."""
        sums: list[Sums] = []
        pairs = zip(befores, self._data.gate, strict=True)
        return [self._single.reference(before, [batch], self._request.seed, sums, runs) for before, batch in pairs]

    @functools.cached_property
    def _in_turn(self) -> "Iterator[tuple[Array, Array]]":
        return itertools.cycle(self._data.late)

    def one_more(self) -> KnownStep:
        """A step on one of the gate's batches with other labels, never on that of the call before."""
        self._late = next(self._in_turn)
        return self._known_step(self._data.share_of(self._late))

    @abstractmethod
    def _known_step(self, batch: "tuple[Array, Array]") -> KnownStep:
        """One update on this process's share of a batch, by the program that is timed."""

    def reference_of_one_more(self, before: Sequence[VariableState]) -> Reference:
        """As the first updates'."""
        return self._single.reference(before, [self._late], self._request.seed)

    def tracer(self, leads: bool) -> Tracer | None:
        """None is asked for (`refuse_what_is_tensorflows`)."""
        return None

    def forget_peak(self) -> None:  # noqa: B027  there need be no accelerator
        """There is no accelerator."""

    def peak_device_memory_bytes(self) -> int | None:
        """There is no accelerator."""
        return None


def reference_key(request: Request, initial: Sequence[VariableState], batches: "Sequence[Batch]") -> bytes:
    """All that the reference of the first updates depends on: the whole cell, the seed, where each copy of the state
    begins, and the examples. What else there is, such as versions, a run has once.

    An array that several replicas' copies are (`harness.trial.copies.one_where_alike`) is read once.
    """
    own = [[0, *(r for r, copy in enumerate(state.copies) if copy is not state.copies[0])] for state in initial]
    begins = (state.copies[r] for state, replicas in zip(initial, own, strict=True) for r in replicas)
    arrays = [*begins, *(part for batch in batches for part in batch)]
    shapes = [(array.shape, str(array.dtype)) for array in arrays]
    kinds = [(state.name, state.kind, len(state.copies)) for state in initial]
    found = hashlib.sha256(repr((request.cell.cell_id, request.seed, kinds, own, shapes)).encode())
    for array in arrays:
        found.update(array.tobytes())
    return found.digest()


class MeanLoss:
    """What this process has of a step's loss; read as a number it is the mean over all processes.

    The step does not average it: that would be an all-reduce in every step of several processes, and in none of one.
    """

    def __init__(self, own: Any, agree: Callable[[float], float]) -> None:
        self._own, self._agree = own, agree

    def __float__(self) -> float:
        return self._agree(float(self._own))


class ReplicaAProcess(SameWorkTrainer):
    """A trainer whose replicas are processes, each with its share of a global batch, which average their gradients."""

    @abstractmethod
    def averaged(self, patterns: "Sequence[Array]", weight: float) -> "list[Array]":
        """What the optimizer gets as gradients where this process's are `weight` times each pattern."""

    @property
    @abstractmethod
    def _sent(self) -> tuple[list[tuple[int, ...]], str]:
        """The shapes of the gradients, and the type that they travel in."""

    @abstractmethod
    def _mean(self, value: float) -> float:
        """The mean over the processes, where there are several."""

    @abstractmethod
    def _alone(self) -> None:
        """Forward and backward of the last batch, nothing averaged."""

    def synchronise(self) -> None:
        """A step on processors returns when it is done."""

    def agree(self, value: float) -> float:
        """The mean over the processes."""
        return value if self._request.member is None else self._mean(value)

    @property
    def alone(self) -> Callable[[], None] | None:
        """Forward and backward of the last batch, nothing averaged."""
        return self._alone

    @property
    def _op(self) -> str:
        """The cross-device op, by which gradients travel."""
        return self._request.training.cross_device_op

    def check_reduction(self) -> str | None:
        """Known values in the shapes of the model's gradients, by the way of the step.

        Each process sends as many times its values as there are processes, so that their mean is the sum. Dividing
        rounds where their number is no power of two: what is received is then rounded to the whole numbers that were
        sent, which are so much smaller that it is less than a half.
        """
        import numpy as np

        count = self._request.training.workers
        shapes, sent = self._sent
        rounds = bool(count & (count - 1))
        weights, patterns = known_values(count, [(shape, sent) for shape in shapes])
        if rounds:
            patterns = [np.ceil(pattern / (8 if sent == FLOAT32 else count)) for pattern in patterns]
        own = count * weights[self._rank]
        received = [np.rint(value) if rounds else value for value in self.averaged(patterns, own)]
        evidence = judge_sums([[value] for value in received], patterns, weights)
        if evidence and all(np.array_equal(*pair) for pair in zip(received, [own * p for p in patterns], strict=True)):
            return f"{evidence}, or nothing was averaged: it is what this process had sent itself"
        return evidence


def of_this_process(request: Request, threads: tuple[int, int]) -> Resources:
    """The processor, and the threads that a process that is one replica was found to have within and between ops; 0 is
    the framework's choice."""
    within, between = threads
    physical = max(1, len(os.sched_getaffinity(0)) // max(1, request.intra_op_threads))
    return Resources(
        logical_devices=[f"cpu:{0 if request.member is None else request.member.index}"],
        physical_devices=physical,
        shared=request.cell.shape.workers > physical,
        intra_op_threads=within,
        inter_op_threads=between,
    )


def refuse_what_is_tensorflows(
    request: Request, title: str, compiling: str, taken: Collection[str] = AXES_OF_TRAININGS
) -> None:
    """Unsupported, with the reason, for what the engine of a title does not do; `compiling` is why it takes no XLA, and
    of a cell's keys it has `taken` these into account."""
    cell = request.training
    if cell.precision != "float32":
        raise Unsupported(f"precision: with {title} this harness trains in float32 ({cell.precision})")
    if cell.xla:
        raise Unsupported(f"xla: {compiling}; leave the flag out")
    refuse_what_is_beside(request, taken, title, taken_apart=True)


def refuse_what_is_beside(request: Request, taken: Collection[str], title: str, taken_apart: bool = False) -> None:
    """Unsupported, with the reason, for an axis that the engine of a title has not `taken` into account, and for what
    is done to a step or looked at beside it; a step may be `taken_apart`, and workers may be slow before it, where its
    engine has instruments."""
    refuse_other_axes(request.cell, taken, title)
    if request.plant is not None and not (taken_apart and request.plant.kind in (SLOW_WORKER, WORKER_DELAY)):
        raise Unsupported(f"plant: '{request.plant.kind}' is planted in TensorFlow's programs alone")
    if request.instrument and not taken_apart:
        raise Unsupported(f"instrument '{request.instrument}': the steps of {title} are not taken apart")
    if request.trace is not None:
        raise Unsupported(f"trace: {REFUSED['trace']}")
