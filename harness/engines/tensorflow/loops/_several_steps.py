"""Several training steps in one call of a program, each on the next batch: `steps_per_execution`.

The program is given how many of them to make, at most those of the cell, so that the one that is timed is the one whose
single steps were proved.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


class SeveralSteps:
    """Calls of a training `step`, a tf.function (x, y) -> each replica's share of the loss."""

    def __init__(self, training: "Training", step: Any) -> None:
        self._most = training.cell.steps_per_execution
        self._of_batch = training.source.on_device
        """Whether a call has one batch, which lies on the devices, for all of its steps, or takes one for each."""
        self._step = step
        self._called = _repeated(training, step, self._next)
        self._example: Any = None

    def make(self, steps: int, batches: Any) -> tuple[Any, ...]:
        """So many steps, in calls of at most `steps_per_execution`; each replica's share of the last one's loss."""
        import tensorflow as tf

        for first in range(0, steps, self._most):
            given = next(batches) if self._of_batch else batches
            shares = self._called(given, tf.constant(min(self._most, steps - first)))
        self._example = given
        found: tuple[Any, ...] = shares
        return found

    def program_of_step(self) -> Any:
        """The concrete function of a step, as a call has it."""
        traced = self._step._list_all_concrete_functions()
        return traced[-1] if traced else None

    def program(self) -> Any:
        """The concrete function of a call; None before the first."""
        import tensorflow as tf

        return None if self._example is None else self._called.get_concrete_function(self._example, tf.constant(1))

    def traces(self) -> int:
        """How often a call was traced."""
        return int(self._called.experimental_get_tracing_count())

    def _next(self, given: Any) -> Any:
        return given if self._of_batch else given.get_next()


def _repeated(training: "Training", step: Any, batch_of: Callable[[Any], Any]) -> Any:
    """(what batches come from, how many steps) -> each replica's share of the last one's loss."""
    import tensorflow as tf

    strategy, most = training.strategy, training.cell.steps_per_execution

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def steps(given: Any, count: Any) -> Any:
        def body(done: Any, _: Any) -> Any:
            shares = strategy.experimental_local_results(step(*batch_of(given)))
            return done + 1, tuple(tf.cast(share, tf.float64) for share in shares)

        def more(done: Any, _: Any) -> Any:
            return tf.logical_and(done < count, done < most)

        nothing = tuple(tf.zeros([], tf.float64) for _ in training.devices.names)
        return tf.while_loop(more, body, (tf.constant(0), nothing), parallel_iterations=1)[1]

    return steps


def several_in_a_call(loss_of: Callable[[Any, Any], Any]) -> Any:
    """(x, y, count) -> the loss of the last of so many steps (x, y) -> loss, each after the one before it."""
    import tensorflow as tf

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def steps(x: Any, y: Any, count: Any) -> Any:
        done = tf.while_loop(
            lambda i, _: i < count,
            lambda i, _: (i + 1, loss_of(x, y)),
            (tf.constant(0), tf.constant(0.0)),
            parallel_iterations=1,
        )
        return done[1]

    return steps
