"""How a model that trains by a `train_step` or `compute_loss` of its own is compiled and called."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.own_training import has_its_own, own_training
from harness.engines.tensorflow.workloads import LossOfSeveral
from harness.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from harness.engines.tensorflow.plants import Planted
    from harness.engines.tensorflow.training import Training

_LOSS = "loss"
"""What Keras calls the loss among what a train_step returns."""


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

    returned = model.train_step((x, y))
    if not isinstance(returned, dict) or _LOSS not in returned:
        raise UsageError(f"model: '{model.name}': its train_step returns no '{_LOSS}', expected a dict with one")
    return tf.cast(returned[_LOSS], tf.float32)


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
