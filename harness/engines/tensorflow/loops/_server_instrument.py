"""Instruments of updates to parameter servers: what a worker's update is without its pull, its push, or both.

What an instrument leaves out is read from its traced program, and what the graph optimiser leaves of that from one run
of it in the coordinator: on the workers, where it is timed, nobody can look.
"""

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.loops._coordinator import CoordinatorLoop, gradients_of_weights, loss_of_weights
from harness.engines.tensorflow.loops.custom import number_of
from harness.engines.tensorflow.program_ops import collect_graphs, collected, goes_backward, holds_of
from harness.errors import Unsupported
from harness.record.explain import EMPTY, FORWARD, FORWARD_BACKWARD, NO_INPUT, NO_PULL, NO_PUSH, OF_SERVERS
from harness.trial.instruments import Holds, in_words

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training

READ_INPUT = (NO_PULL, NO_PUSH)
"""Those that have batches of the pipeline; the others have one that lies on the worker."""
OWN_WEIGHTS = (NO_PULL, FORWARD_BACKWARD, FORWARD)
"""Those whose weights are the worker's own."""
COUNTS = 2
"""Reads of the step counter, before an update and after it, by which its staleness is known."""


class ServerInstrumentLoop(CoordinatorLoop):
    """The coordinator's loop, timed on an instrument. Raises Unsupported where the cell has none, or it lacks more."""

    def __init__(self, training: "Training", name: str) -> None:
        if training.cell.updates != "locked" or name not in OF_SERVERS:
            raise Unsupported(f"instrument '{name}': updates '{training.cell.updates}' to servers have none")
        super().__init__(training)
        self._name = name
        self._instrument: Any = None

    def program(self) -> Any:
        """That of the instrument, once it is timed."""
        if self._instrument is None:
            return super().program()
        return self._instrument.get_concrete_function(*self._example, *self._own())

    def _input(self) -> Callable[[], Any]:
        """The instrument's, once it is judged: batches, and beside each the weights that are the worker's own."""
        import tensorflow as tf

        training, (x, y) = self._training, self._example
        whole, left_of_whole = self._holds(super().program()), _left(self._update, x, y)
        instrument = self._instrument = tf.function(self._without(), autograph=False)
        self._judge(whole, left_of_whole, _left(instrument, x, y, *self._own()))

        @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
        def batches() -> Any:
            one = tf.data.Dataset.from_tensors((x, y)).repeat()
            made = training.endless(training.cell.global_batch_size) if self._name in READ_INPUT else one
            own = tf.data.Dataset.from_tensors(tuple(self._own())).repeat() if self._own() else None
            beside = tf.autograph.experimental.do_not_convert(lambda batch, given: (*batch, *given))
            return made if own is None else tf.data.Dataset.zip(made, own).map(beside)

        self._timed = tf.function(lambda batches: instrument(*next(batches)), autograph=False)
        made: Callable[[], Any] = batches
        return made

    def _own(self) -> list[Any]:
        """Weights for a worker of its own, as they are now on the servers: all trained, then all untrained ones."""
        trained, untrained = self._training.model.read() if self._name in OWN_WEIGHTS else ([], [])
        return [*trained, *untrained]

    def _without(self) -> Any:
        """(x, y, the worker's own weights) -> (a number, updates that others made meanwhile)."""
        parts: dict[str, Any] = {
            NO_INPUT: self._update,
            NO_PULL: self._on_own_weights,
            NO_PUSH: self._without_a_push,
            FORWARD_BACKWARD: self._gradients_alone,
            FORWARD: self._loss_alone,
            EMPTY: _nothing,
        }
        return parts[self._name]

    def _on_own_weights(self, x: Any, y: Any, *own: Any) -> Any:
        import tensorflow as tf

        model, optimizer = self._training.model, self._training.optimizer
        before = optimizer.iterations.read_value()
        with tf.control_dependencies([before]):
            trained, untrained = self._cut(own)
            loss, gradients, after = self._gradients_of(trained, untrained, x, y)
        optimizer.apply(self._plant.before_push(gradients))
        model.keep_untrained(untrained, after)
        return loss, optimizer.iterations.read_value() - 1 - before

    def _without_a_push(self, x: Any, y: Any) -> Any:
        import tensorflow as tf

        iterations = self._training.optimizer.iterations
        before = iterations.read_value()
        with tf.control_dependencies([before]):
            trained, untrained = self._training.model.read()
        loss, gradients, _ = self._gradients_of(self._plant.after_pull(trained), untrained, x, y)
        with tf.control_dependencies([told := loss + number_of(gradients)]):
            return told, iterations.read_value() - before

    def _gradients_alone(self, x: Any, y: Any, *own: Any) -> Any:
        return number_of(self._gradients_of(*self._cut(own), x, y)[1]), 0

    def _loss_alone(self, x: Any, y: Any, *own: Any) -> Any:
        return loss_of_weights(self._training)(*self._cut(own), x, y)[0], 0

    @functools.cached_property
    def _gradients_of(self) -> Any:
        return gradients_of_weights(self._training)

    def _cut(self, own: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """(trained, untrained) weights."""
        trained = len(self._training.model.trainable_variables)
        return list(own[:trained]), list(own[trained:])

    def _holds(self, program: Any) -> Holds:
        """What a program holds; the kernels that update are no products."""
        return holds_of(program, self._training.cell, {self._training.optimizer.configured.name})

    def _judge(self, whole: Holds, left_of_whole: int, left: int) -> None:
        """Raises Unsupported unless the instrument lacks what its name says, and nothing else."""
        weights = sum(len(variable.shards) for variable in self._training.model.variables)
        fault = lacks_more_of_servers(self._name, whole, self._holds(self.program()), weights)
        if not fault and self._name not in (FORWARD, EMPTY) and left != left_of_whole:
            fault = f"{left} products and convolutions are executed, and {left_of_whole} in the whole update"
        if fault:
            raise Unsupported(f"instrument '{self._name}': {fault}")


def lacks_more_of_servers(name: str, whole: Holds, holds: Holds, weights: int) -> str | None:
    """What an instrument's program lacks or has against its name, of a model whose weights lie in so many variables;
    None where it is as it should be."""
    pulled = {NO_INPUT: whole.reads, NO_PULL: whole.reads - weights, NO_PUSH: weights + COUNTS}.get(name, 0)
    changes = whole.changes if name in (NO_INPUT, NO_PULL) else 0
    computes = name not in (FORWARD, EMPTY)
    if computes and holds.work != whole.work:
        return f"it computes {in_words(holds.work)} where the whole update computes {in_words(whole.work)}"
    if computes and None not in (holds.flops, whole.flops) and holds.flops != whole.flops:
        return f"its products take {holds.flops:,} operations where the whole update's take {whole.flops:,}"
    if holds.changes != changes:
        return f"it changes variables {holds.changes} times, and is to change them {changes} times"
    if holds.reads != pulled:
        return f"it reads variables {holds.reads} times, and is to read them {pulled} times"
    if name == FORWARD:
        return _lacks_of_forward(whole, holds)
    if name == EMPTY and holds.work:
        return f"it computes {in_words(holds.work)}"
    return None


def _lacks_of_forward(whole: Holds, holds: Holds) -> str | None:
    """The same of what is to compute the forward pass alone."""
    products = Counter({op: count for op, count in whole.work.items() if not goes_backward(op)})
    if any(map(goes_backward, holds.work)):
        return f"it goes backward: {in_words(holds.work)}"
    if products and not holds.work:
        return f"it computes nothing where the whole update computes {in_words(products)}"
    if None not in (whole.forward, holds.forward) and holds.forward != whole.forward:
        forward, of_whole = in_words(holds.forward or Counter()), in_words(whole.forward or Counter())
        return f"it computes {forward} where the whole update's forward pass computes {of_whole}"
    return None


def _left(function: Any, *given: Any) -> int:
    """Products and convolutions that the graph optimiser leaves of a function, which is run once."""
    collect_graphs()
    function(*given)
    return collected()


def _nothing(_: Any, __: Any) -> Any:
    import tensorflow as tf

    return tf.zeros([]), 0
