"""How a model that trains by a `train_step` or `compute_loss` of its own is compiled and called."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from harness.engines._keras.paced_fit import loss_in
from harness.engines.tensorflow.own_training import has_its_own, own_training
from harness.engines.tensorflow.structures import as_keras_takes
from harness.engines.tensorflow.tapes import tapes_return
from harness.engines.tensorflow.workloads import LossOfSeveral
from harness.errors import Unsupported

if TYPE_CHECKING:
    from harness.engines.tensorflow.plants import Planted
    from harness.engines.tensorflow.training import Training


def refuse_own_compile(model: Any, loop: str) -> None:
    """Raises Unsupported where a model has a `compile` of its own."""
    if has_its_own(model, "compile"):
        raise Unsupported(
            f"loop '{loop}': the model has its own compile, whose optimizers and losses the cell's would replace; "
            "measure it as a step or a script of your own (--step)"
        )


def compile_as_asked(training: "Training", model: Any, optimizer: Any, a_call: int = 1) -> None:
    """Compile a model with the loss of the training, for Keras' methods and for those in their place; Keras'
    train function is to make `a_call` steps in a call."""
    loss = training.loss.each if isinstance(training.loss, LossOfSeveral) else training.loss
    # jit_compile is pinned: Keras' "auto" would compile the base case and not the rest.
    model.compile(optimizer=optimizer, loss=loss, jit_compile=training.cell.xla, steps_per_execution=a_call)


def begin_loss_anew(model: Any) -> None:
    """The loss that a train_step returns may be a metric, which goes on from step to step, on each replica by itself:
    it begins anew. Between windows that costs no step anything."""
    if own_training(model):
        model.reset_metrics()


def loss_of_train_step(model: Any, x: Any, y: Any) -> Any:
    """One call of a compiled model's train_step on a replica's part of a batch; the loss that it returns: of that part,
    or the mean of those since `begin_loss_anew`."""
    import tensorflow as tf

    return tf.cast(loss_in(model.train_step(as_keras_takes(x, y)), model.name), tf.float32)


class HandedOver:
    """The gradients that a model's train_step hands its optimizer, of the replica or share of each thread.

    `refuse` raises, told what the step does by which they are not known.
    """

    def __init__(self, model: Any, refuse: Callable[[str], NoReturn]) -> None:
        self._model, self._refuse = model, refuse
        self._of_thread = threading.local()

    def of_step(self, x: Any, y: Any) -> tuple[Any, list[Any]]:
        """One call of the compiled model's train_step: its loss, and the list that `take` has given."""
        self._of_thread.gradients = None
        loss = loss_of_train_step(self._model, x, y)
        if self._of_thread.gradients is None:
            self._refuse("hands the optimizer no gradients")
        return loss, self._of_thread.gradients

    def take(self, gradients: Sequence[Any], given: Sequence[Any] | None) -> list[Any]:
        """Of what `optimizer.apply` is called with, one a weight, in their order: None of one that is not `given`."""
        weights = self._model.trainable_variables
        if self._of_thread.gradients is not None:
            self._refuse("updates weights more than once")
        places = {id(known): place for place, weight in enumerate(weights) for known in (weight, weight.value)}
        found: list[Any] = [None] * len(weights)
        for gradient, weight in zip(gradients, given or weights, strict=True):
            if id(weight) not in places:
                self._refuse("hands the optimizer what is no trained weight of the model")
            found[places[id(weight)]] = gradient
        self._of_thread.gradients = found
        return found


class GradientsOfTrainStep:
    """Forward and backward of a replica by its model's train_step: (x, y) -> (its share of the mean loss, gradients).

    Made of a compiled model. From then on what the step hands the model's optimizer updates nothing.
    """

    def __init__(self, training: "Training") -> None:
        self._training = training
        self._handed = HandedOver(training.model, _not_taken_apart)
        training.optimizer.apply = lambda grads, trainable_variables=None: self._handed.take(grads, trainable_variables)

    def __call__(self, x: Any, y: Any) -> tuple[Any, list[Any]]:
        loss, gradients = self._handed.of_step(x, y)
        return loss / self._training.cell.replicas_per_update, gradients

    def update(self, gradients: Sequence[Any]) -> None:
        """What the optimizer does with a replica's gradients."""
        optimizer = self._training.optimizer
        type(optimizer).apply(optimizer, gradients, self._training.model.trainable_variables)


def _not_taken_apart(does: str) -> NoReturn:
    raise Unsupported(f"the model's own train_step {does}, so that it is not known what its parts are")


def no_gradients() -> contextlib.AbstractContextManager[None]:
    """While entered, what is traced gets zeros from every gradient tape, and goes forward alone."""
    import tensorflow as tf

    def zeros(_asked: Any, _tape: Any, _target: Any, sources: Any, *_: Any, **__: Any) -> Any:
        return tf.nest.map_structure(tf.zeros_like, sources)

    return tapes_return(zeros)


def own_replica_step(training: "Training", plant: "Planted") -> Callable[[Any, Any], Any]:
    """A replica's part of a step by its model's train_step, the model compiled for it: (x, y) -> its share of the mean
    loss."""
    model, replicas = training.model, training.cell.replicas_per_update
    refuse_own_compile(model, training.cell.loop)
    with training.strategy.scope():
        compile_as_asked(training, model, training.optimizer)

    def replica_step(x: Any, y: Any) -> Any:
        share = loss_of_train_step(model, plant.before_forward(x), y) / replicas
        return plant.after_update(share, model.trainable_variables)

    return replica_step
