"""Instruments: after its proved first updates, a trial goes on with a program that lacks one thing.

Each is judged before it is timed: beside the whole step's program it lacks what its name says and nothing else, and
the graph optimiser has left out no more (`_judge`). What it trains then is not meant to be right.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.loops._micro_batches import accumulated
from harness.engines.tensorflow.loops._several_steps import several_in_a_call
from harness.engines.tensorflow.loops.custom import CustomLoop, make_step, number_of, on_replicas
from harness.engines.tensorflow.own_training import own_training
from harness.engines.tensorflow.plants import Planted
from harness.engines.tensorflow.program_ops import collect_graphs, collected, goes_backward, holds_of
from harness.engines.tensorflow.strategies import strategies
from harness.engines.tensorflow.train_step import GradientsOfTrainStep, no_gradients
from harness.engines.tensorflow.training import share_loss
from harness.errors import Unsupported
from harness.record.explain import (
    BARRIER,
    EMPTY,
    FORWARD,
    FORWARD_BACKWARD,
    IN_ONE_CALL,
    NO_INPUT,
    NO_REDUCTION,
    NO_UPDATE,
    REDUCTION,
)
from harness.trial import instruments
from harness.trial.instruments import READ_INPUT, STEPS_A_CALL, Holds

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training

MAKE_THE_WHOLE_STEP = (NO_INPUT, IN_ONE_CALL)
"""Instruments that leave out nothing of what a replica does."""
Replica = Callable[[Any, Any], Any]
"""A replica's part of a step: (x, y) -> a number."""


class InstrumentLoop(CustomLoop):
    """The custom loop, timed on an instrument. Raises Unsupported where the cell has none, or it lacks more."""

    def __init__(self, training: "Training", name: str) -> None:
        cell = training.cell
        if not strategies()[cell.strategy].traits.instruments or cell.loop != "custom" or cell.mesh:
            raise Unsupported(f"instrument '{name}': strategy '{cell.strategy}' in loop '{cell.loop}' has none")
        if cell.steps_per_execution > 1:
            raise Unsupported(f"instrument '{name}': steps are taken apart one by one: give --steps-per-execution 1")
        super().__init__(training)
        self._name = name
        self._traced = self._plant
        """What is planted in the program; the loop's own plant may be taken out before."""
        self._instrument: Any = None
        self._own: GradientsOfTrainStep | None = None
        """Of a model whose own train_step makes the update as well, once parts of it are to be left out."""
        self._told = False
        """Whether what replicas add up is how they wait for each other, of those that keep gradients apart."""
        collect_graphs()

    def program(self) -> Any:
        """That of the instrument, once it is timed."""
        if self._instrument is None or self._example is None:
            return super().program()
        return self._instrument.get_concrete_function(*self._example)

    def _issue(self, step: Any, batches: Iterator[tuple[Any, ...]], steps: int) -> tuple[tuple[Any, ...], Any]:
        """Several in one call, where that is the instrument."""
        import tensorflow as tf

        if self._name != IN_ONE_CALL or self._instrument is None:
            return super()._issue(step, batches, steps)
        for first in range(0, steps, STEPS_A_CALL):
            self._plant.before_step()
            batch = (*next(batches)[:2], tf.constant(min(STEPS_A_CALL, steps - first)))
            shares = step(*batch)
        return batch, shares

    def _timed(self, batches: Iterator[tuple[Any, ...]]) -> tuple[Any, Iterator[tuple[Any, ...]]]:
        """The instrument, once it is judged. What the whole step reads from the input is left to those that need it."""
        import tensorflow as tf

        training = self._training
        whole, optimised_whole = self._holds(super().program()), collected()
        if self._name not in READ_INPUT:
            batches = itertools.cycle([on_replicas(training, x, y) for x, y in training.batches])
        if self._name == REDUCTION:
            batches = itertools.cycle([(self._like_gradients(), next(batches)[1])])
        if self._name in (NO_REDUCTION, BARRIER):
            _keep_apart(training.strategy, lambda: self._told)
        if own_training(training.model) and self._name not in MAKE_THE_WHOLE_STEP:
            self._gradients_of = self._own = GradientsOfTrainStep(training)
        self._instrument = self._step_without()
        if self._name not in READ_INPUT and self._plant.of_input:
            self._plant = Planted()
        several = (tf.constant(STEPS_A_CALL),) if self._name == IN_ONE_CALL else ()
        self._example = (*next(batches), *several)
        collect_graphs()
        self._instrument(*self._example)
        self._judge(whole, optimised_whole, collected())
        return self._instrument, batches

    def _holds(self, program: Any) -> Holds:
        """What a program holds. A model that trains itself has its own optimizer."""
        names, found = set(), [self._training.optimizer, getattr(self._training.model, "optimizer", None)]
        while found:
            if (optimizer := found.pop()) is not None:
                names.add(optimizer.name)
                found.append(getattr(optimizer, "inner_optimizer", None))
        return holds_of(program, self._training.cell, names)

    def _step_without(self) -> Any:
        training = self._training
        if self._name == NO_INPUT:
            return make_step(training, self._plant, self._gradients_of)
        if self._name == NO_REDUCTION:
            one_place = training.cell.strategy == "central_storage"
            return self._step_by(self._gradients_told if one_place else self._gradients_of)
        if self._name == BARRIER:
            return self._step_by(self._gradients_when_all_have_theirs)
        if self._name == IN_ONE_CALL:
            return _in_one_call(training, make_step(training, self._plant, self._gradients_of))
        parts: dict[str, Replica] = {
            NO_UPDATE: self._gradients_added_up,
            FORWARD_BACKWARD: self._gradients_alone,
            FORWARD: self._loss_alone,
            EMPTY: _nothing,
            REDUCTION: _given_added_up,
        }
        forward_alone = self._name == FORWARD and self._own is not None
        return _called(training, parts[self._name], no_gradients if forward_alone else contextlib.nullcontext)

    def _step_by(self, gradients_of: Any) -> Any:
        """A step that updates weights by `gradients_of` a replica's part of a batch."""
        update = None if self._own is None else self._own.update
        return make_step(self._training, self._plant, gradients_of, update)

    def _gradients_told(self, x: Any, y: Any) -> Any:
        """With the loss a number that is made of the gradients. Where variables lie in one place only the first
        replica's are applied, and the graph optimiser would leave out what makes the others'."""
        loss, gradients = self._gradients_of(x, y)
        return loss + number_of(gradients), gradients

    def _gradients_when_all_have_theirs(self, x: Any, y: Any) -> Any:
        """Each replica's own, behind a sum of one number of each."""
        import tensorflow as tf

        loss, gradients = self._gradients_of(x, y)
        self._told = True
        all_there = _added_up([number_of(gradients)])
        self._told = False
        with tf.control_dependencies([all_there]):
            return tf.identity(loss), [None if gradient is None else tf.identity(gradient) for gradient in gradients]

    def _gradients_added_up(self, x: Any, y: Any) -> Any:
        """As the optimizer adds them up, which Keras does before anything else of an update."""
        _, gradients = self._gradients_of(self._traced.before_forward(x), y)
        return _added_up([gradient for gradient in gradients if gradient is not None])

    def _like_gradients(self) -> list[Any]:
        """Of each trained weight a tensor of its shape on every replica, which lies there already."""
        import tensorflow as tf

        training = self._training
        names = training.devices.names

        def ones(weight: Any) -> Any:
            def of_replica(context: Any) -> Any:
                with tf.device(names[context.replica_id_in_sync_group % len(names)]):
                    return tf.ones(weight.shape, weight.dtype)

            return training.strategy.experimental_distribute_values_from_function(of_replica)

        return [ones(weight) for weight in training.model.trainable_variables]

    def _gradients_alone(self, x: Any, y: Any) -> Any:
        return number_of(self._gradients_of(self._traced.before_forward(x), y)[1])

    def _loss_alone(self, x: Any, y: Any) -> Any:
        return self._loss_of(self._traced.before_forward(x), y)

    @functools.cached_property
    def _loss_of(self) -> Any:
        import tensorflow as tf

        if (own := self._own) is not None:
            return lambda x, y: own(x, y)[0]
        cell = self._training.cell
        loss_of = share_loss(self._training, self._training.model, cell.micro_batches)
        if cell.xla:
            loss_of = tf.function(loss_of, jit_compile=True, autograph=False)
        of_all = accumulated(lambda x, y: (loss_of(x, y), []), cell.micro_batches)
        return lambda x, y: of_all(x, y)[0]

    def _judge(self, whole: Holds, left_of_whole: int, left: int) -> None:
        """Raises Unsupported unless the instrument lacks what its name says, and nothing else.

        `left` are the products and convolutions that the graph optimiser left of each: what nobody needs, such as the
        gradient of the batch itself, it leaves out of both. It does not see into what XLA compiles.
        """
        holds = replace(self._holds(self.program()), left=left)
        if fault := lacks_more(self._name, replace(whole, left=left_of_whole), holds):
            raise Unsupported(f"instrument '{self._name}': {fault}")


def lacks_more(name: str, whole: Holds, holds: Holds) -> str | None:
    """What an instrument's program lacks or has against its name; None where it is as it should be."""
    return instruments.lacks_more(name, whole, holds, goes_backward)


def _added_up(values: Sequence[Any]) -> Any:
    """A number that is there when each of the replica's `values` has been added up over all replicas."""
    import tensorflow as tf

    return number_of(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values))


def _given_added_up(values: Sequence[Any], _: Any) -> Any:
    """The same of what the step is given. A placeholder is on no device, by which sums over several are known; an op
    that only looks at its input's shape is on the replica's."""
    import tensorflow as tf

    return _added_up([tf.ensure_shape(value, value.shape) for value in values])


def _nothing(_: Any, __: Any) -> Any:
    import tensorflow as tf

    return tf.zeros([])


def _called(training: "Training", replica: Replica, traced: Callable[[], Any] = contextlib.nullcontext) -> Any:
    """`replica` through the strategy, as `make_step` does it; it is `traced` within what that gives."""
    import tensorflow as tf

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(x: Any, y: Any) -> Any:
        with training.placement(), traced():
            return training.strategy.run(replica, args=(x, y))

    return step


def _in_one_call(training: "Training", step: Any) -> Any:
    """(x, y, count) -> the loss of the last of so many steps, each after the one before it."""
    import tensorflow as tf

    return several_in_a_call(lambda x, y: tf.add_n(list(training.strategy.experimental_local_results(step(x, y)))))


def _keep_apart(strategy: Any, told: Callable[[], bool]) -> None:
    """From here on, what is traced of the strategy gives each replica its own values where it asks for their sum,
    unless it is `told` to add up."""
    from tensorflow.python.distribute import values

    added_up = strategy.extended._batch_reduce_to

    def own(operation: Any, pairs: Any, options: Any) -> list[Any]:
        if told():
            return list(added_up(operation, pairs, options))
        several = values.DistributedValues  # where a process has one replica, what it has is no list of values
        return [values.Mirrored(value.values) if isinstance(value, several) else value for value, _ in pairs]

    strategy.extended._batch_reduce_to = own
