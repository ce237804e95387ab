"""What trainers of the same work are alike in: how they are proved, and what they are not asked."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from harness.errors import Unsupported
from harness.protocol.engine import Tracer
from harness.protocol.messages import Request
from harness.protocol.state import Reference, VariableState
from harness.spec.cell import TrainingCell
from harness.trial.same_work.batches import Data
from harness.trial.same_work.reference import ShareByShare

OF_TF_DATA = ("cache", "parallel_calls", "shuffle_buffer", "deterministic")
"""Axes of an input pipeline of TensorFlow."""


class SameWorkTrainer(ABC):
    """Of a trainer (`harness.protocol.engine.Trainer`) what follows from its batches and its reference by shares."""

    least_steps = 1

    @property
    def ahead(self) -> int:
        """What the cell asks for."""
        return self._data.ahead

    staleness: dict[int, int] | None = None
    _request: Request
    _data: Data

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
        """In this process alone, by gradients of each share and NumPy."""
        return self._single.reference(initial, self._data.gate, self._request.seed)

    def reference_of_one_more(self, before: Sequence[VariableState]) -> Reference:
        """As the first updates'."""
        return self._single.reference(before, [self._data.late], self._request.seed)

    def tracer(self, leads: bool) -> Tracer | None:
        """None is asked for (`refuse_what_is_tensorflows`)."""
        return None

    def peak_device_memory_bytes(self) -> int | None:
        """There is no accelerator."""
        return None


def refuse_what_is_tensorflows(request: Request, title: str, compiling: str) -> None:
    """Unsupported, with the reason, for what the engine of a title does not do; `compiling` is why it takes no XLA."""
    cell = request.training
    if cell.precision != "float32":
        raise Unsupported(f"precision: with {title} this harness trains in float32 ({cell.precision})")
    if others := [key for key in OF_TF_DATA if getattr(cell, key) != TrainingCell.model_fields[key].default]:
        raise Unsupported(f"{others[0]}: {title}'s batches come without tf.data; leave the flag out")
    if cell.xla:
        raise Unsupported(f"xla: {compiling}; leave the flag out")
    if request.plant is not None or request.instrument:
        raise Unsupported("plants and instruments are of TensorFlow's programs")
    if request.trace is not None:
        raise Unsupported(f"trace: {title}'s profiler is not asked here; leave the flag out")
