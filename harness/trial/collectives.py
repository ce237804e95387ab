"""A collective by itself: what replicas send, whether each received exactly what it should, and the trial around it.

A step is one call that does one collective on buffers that lie on the replicas' devices. So its time has the call in
it, which is all there is to a small buffer. Before the first window and after the last, each element that any replica
received is compared with what it should be; the timed steps send the very buffers that were proved, and the proof after
them sends others.
"""

import contextlib
import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from harness.protocol.channel import Channel
from harness.protocol.engine import Ending, Tracer
from harness.protocol.messages import Request
from harness.record.trial import Executed, Resources
from harness.spec.collective import CollectiveCell
from harness.spec.work import Cell
from harness.trial import nccl
from harness.trial.attempt import Attempt
from harness.trial.clock import Clock
from harness.trial.sums import judge_copies, judge_sums, known_values

if TYPE_CHECKING:
    from harness.protocol.state import Array

GATE_STEPS = 1
WARM_CALLS, WARM_S = 5, 0.5
"""Before each window of several workers come as many calls that nobody times, if they fit into so many seconds: while
others have the turn TCP's connections rest, and then begin slowly again."""
ROOT = 0
"""The number of the replica that broadcasts."""


@dataclass(frozen=True)
class KnownBuffers:
    """Replica r sends `weights[r]` times `pattern`, float32 of the shape [elements]: see `harness.trial.sums`.

    The integers are as large as float32 adds exactly, so a narrower type on the way shows at every size.
    """

    collective: str
    weights: Sequence[float]
    pattern: "Array"

    @classmethod
    def of(cls, cell: CollectiveCell) -> "KnownBuffers":
        """Buffers of the cell's own size, none of them cut."""
        weights, [pattern] = known_values(cell.replicas_in_sync, [((cell.elements,), "float32")], whole=True)
        return cls(cell.collective, weights, pattern)

    def others(self) -> "KnownBuffers":
        """Buffers of which no element is what it was, and which are as exact: a result that is kept is then wrong."""
        return replace(self, pattern=-self.pattern[::-1])

    def sent(self, first: int = 0, count: int | None = None) -> "list[Array]":
        """What each replica sends, float32 of the shape [elements]: all of them, or so many from `first` on."""
        return [weight * self.pattern for weight in self.weights[first:][:count]]

    def judge(self, received: "Sequence[Array]", first: int = 0) -> str | None:
        """None where what each replica of a process received, of which `first` is the first one's number, is right in
        each element; else the evidence. ValueError for a collective that is not known."""
        import numpy as np

        match self.collective:
            case "all_reduce":
                return judge_sums([received], [self.pattern], self.weights, first)
            case "reduce_scatter":
                shares = np.split(self.pattern, len(self.weights))[first:]
                judged = (
                    judge_sums([[value]], [share], self.weights, r)
                    for r, (value, share) in enumerate(zip(received, shares, strict=False), first)
                )
                return next(filter(None, judged), None)
            case "all_gather":
                return judge_copies(received, np.concatenate(self.sent()), first)
            case "broadcast":
                return judge_copies(received, self.weights[ROOT] * self.pattern, first)
        raise ValueError(f"nothing is known of what '{self.collective}' brings")


class Sending(ABC):
    """The collective of a cell between the replicas of this process and those of the others, as an engine does it.

    What a step gives is what this process's replicas received, in whatever form the engine has it.
    """

    engine: ClassVar[str] = ""
    """What does it, where that is not TensorFlow."""
    cell: CollectiveCell
    first: int
    """The number of this process's first replica among all."""

    @property
    @abstractmethod
    def resources(self) -> Resources:
        """What the replicas run on."""

    @abstractmethod
    def fill(self, own: "Sequence[Array]") -> None:
        """Put what each replica of this process sends, float32 [elements], into its buffer."""

    @abstractmethod
    def step(self) -> Any:
        """One collective: what this process's replicas received, possibly still on its way."""

    @abstractmethod
    def wait(self, received: Any) -> None:
        """Return once every replica of this process has what came of its last step."""

    @abstractmethod
    def arrays(self, received: Any) -> "Sequence[Array]":
        """What each replica of this process received, on the host: float32, flat."""

    @abstractmethod
    def executed(self) -> Executed:
        """What really ran, as far as the framework tells."""

    def agree(self, value: float) -> float:
        """One number of what each process has measured; `value` where there is one process."""
        return value

    def resting(self) -> contextlib.AbstractContextManager[object]:
        """Entered while it is another trial's turn; see `Trainer`."""
        return contextlib.nullcontext()

    def tracer(self) -> Tracer | None:
        """What profiles the trial; None where it is not to be."""
        return None

    def forget_peak(self) -> None:  # noqa: B027  there need be no accelerators
        """From now on, accelerators' memory is what the collective takes."""

    def peak_device_memory_bytes(self) -> int | None:
        """Largest sum of accelerator memory over the replicas; None where nobody counts it."""
        return None


class CollectiveTrial(Attempt):
    """A trial of a `CollectiveCell`, which `build` puts on the devices of this process."""

    def __init__(
        self,
        request: Request,
        channel: Channel,
        classify: Callable[[Exception], Ending],
        build: Callable[[Request], Sending],
    ) -> None:
        super().__init__(request, channel, classify)
        self._build = build
        self._received: Any = None

    def _measure(self) -> None:
        self._checks.gate = "collective"
        self._enter("build")
        sending = self._build(self._request)
        self._outcome.resources = sending.resources
        known = KnownBuffers.of(sending.cell)
        fill(sending, known)
        tracer = sending.tracer()
        clock = Clock(
            self._channel,
            lambda: sending.wait(self._received),
            self._request.window_s,
            GATE_STEPS,
            lambda _: self._gate(sending, known),
            sending.agree,
            tracer=tracer,
            resting=sending.resting,
            before=lambda seconds: untimed_calls(sending.cell, seconds),
        )
        self._enter("first_step")
        while steps := clock.begin():
            for _ in range(steps):
                self._received = sending.step()
            clock.end(0.0)  # there is no loss
        self._outcome.trace = tracer.record if tracer else None
        self._enter("check")
        self._outcome.peak_device_memory_bytes = sending.peak_device_memory_bytes()
        evidence = judged(sending, known, self._received)
        if evidence is None:
            others = known.others()
            fill(sending, others)
            evidence = judged(sending, others, sending.step())
        self._judge("late", evidence)

    def _gate(self, sending: Sending, known: KnownBuffers) -> None:
        """After the first step, which is a single one."""
        self._enter("check")
        self._judge("reduction", judged(sending, known, self._received))
        told = {"engine": sending.engine, "nccl": nccl.told()}
        self._outcome.executed = sending.executed().model_copy(update=told)
        gc.enable()
        sending.forget_peak()
        self._enter("warmup")


def fill(sending: Sending, known: KnownBuffers) -> None:
    """Put known values into the buffers of this process's replicas."""
    sending.fill(known.sent(sending.first, sending.cell.replicas))


def judged(sending: Sending, known: KnownBuffers, received: Any) -> str | None:
    """None where what came of a step is exactly right on every replica of this process; else the evidence."""
    arrays, replicas = sending.arrays(received), sending.cell.replicas
    if len(arrays) != replicas:
        return f"{len(arrays)} replicas received something, expected {replicas}"
    return known.judge(arrays, sending.first)


def untimed_calls(cell: CollectiveCell, seconds: float) -> int:
    """Calls before each window that are in none, where one takes so many seconds.

    Fewer where calls are long, and none where one is longer than `WARM_S`: the round trips in which a connection finds
    its speed are a small part of it.
    """
    return min(WARM_CALLS, int(WARM_S / seconds)) if cell.workers > 1 and seconds > 0 else 0


def collective_of(cell: Cell) -> CollectiveCell:
    """The cell as that of a collective; TypeError for other work."""
    if isinstance(cell, CollectiveCell):
        return cell
    raise TypeError(f"cell {cell.cell_id} ({cell.label}) is no collective")
