"""What a loop must be able to do."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.executed import inspect, steps_a_call
from harness.engines.tensorflow.state import copies_of
from harness.engines.tensorflow.structures import stacked
from harness.protocol.engine import Pace
from harness.record.trial import Executed
from harness.trial.sameness import LabelsSeen

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.engines.tensorflow.training import Training


class Loop(ABC):
    """A training loop over a Training."""

    def __init__(self, training: "Training") -> None:
        self._training = training
        self.seen = LabelsSeen()
        """The labels of the first batches, where the loop in Python sees them."""
        self._late: Any = None
        """Kept: taking a distributed iterator down can take seconds, or minutes where replicas wait for each other."""

    @property
    def least_steps(self) -> int:
        """Steps that a window has at least."""
        return 1

    @property
    def alone(self) -> Callable[[], None] | None:
        """One pass on this process's replicas, to its end, without reduction or update; None where there is none."""
        return None

    @property
    def staleness(self) -> dict[int, int] | None:
        """How many updates had how many others pass meanwhile; None where all replicas wait for each other."""
        return None

    @abstractmethod
    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""

    @abstractmethod
    def step_on(self, x: Any, y: Any) -> Any:
        """One update on the next of the late batches in turn, by the program that `run` drives; its loss, what `float`
        takes."""

    def late_in_turn(self) -> Any:
        """An iterator over the late batches, again and again, of the same type as the pipeline's.

        There is one, and each step takes one batch of it: whatever asks again goes on with it.
        """
        import tensorflow as tf

        if self._late is not None:
            return self._late
        training = self._training
        if training.request.member is not None:
            own = tf.data.Dataset.from_tensor_slices(training.own_parts(training.late_batches)).repeat()
            endless = training.distributed_of_worker(own)
        else:
            late = tf.data.Dataset.from_tensor_slices(stacked(training.late_batches)).repeat()
            endless = training.distributed(self._as_given(late))
        self._late = iter(endless)
        return self._late

    def _as_given(self, dataset: "tf.data.Dataset") -> "tf.data.Dataset":
        """Global batches as this loop's step takes them."""
        return dataset

    @abstractmethod
    def program(self) -> Any:
        """The traced program of one step, a tf.types.experimental.ConcreteFunction, or None before it ran."""

    @abstractmethod
    def traces(self) -> int:
        """How often the step was traced: more than before means a retracing happened."""

    def calls_program(self) -> Any:
        """The traced program of a call that makes several steps; None where each is a call of its own."""
        return None

    def executed(self) -> Executed:
        """What the traced program really does."""
        cell = self._training.cell
        found, several = inspect(self.program(), cell), self.calls_program()
        if several is None:
            return found
        made, asked = steps_a_call(several), cell.steps_per_execution
        other = None if made == asked else f"asked for {asked} steps a call; executed {made or 'no loop of steps'}"
        differs = found.differs_from_request or other
        return found.model_copy(update={"steps_a_call": made, "differs_from_request": differs})

    def synchronise(self) -> None:
        """Return when every replica has done its last update."""
        self._last_update()

    @functools.cached_property
    def _last_update(self) -> Callable[[], None]:
        """A function that waits for every replica.

        It brings one element of a trained variable of every replica to the host; updates are ordered
        before reads of the same variable, and accelerators are drained besides.
        """
        import tensorflow as tf

        probes = copies_of(self._training.model.trainable_variables[-1])

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def read() -> list[Any]:
            return [tf.reshape(probe, [-1])[0] for probe in probes]

        accelerated = any("CPU" not in probe.device for probe in probes)

        def wait() -> None:
            if accelerated:
                tf.test.experimental.sync_devices()
            for value in read():
                value.numpy()

        return wait


@dataclass(frozen=True)
class LoopKind:
    """A registered loop."""

    name: str
    summary: str
    build: Callable[["Training"], Loop]
