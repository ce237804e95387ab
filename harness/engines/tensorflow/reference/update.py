"""One update on one device: what each replica's share of a global batch gives, and what the sum of it does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.training import Training, build_model

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Share:
    """What one replica makes of its share of a global batch.

    `gradients` has a tensor a trained weight, of the loss as the optimizer scales it; `loss` is a scalar tensor, the
    share's part of the mean over the global batch and of the regularisation; `statistics` is the untrained state that
    this replica goes on with.
    """

    gradients: list[Any]
    loss: Any
    statistics: "list[Array]"


class SingleDevice:
    """A second model of a training's cell, without tf.distribute, on the device whose scope it is built and used in.

    An update is `shares` and then `apply`, so that what becomes of a gradient on its way (missing, doubled, averaged,
    late) can be tried at the price of an `apply`.
    """

    def __init__(self, training: Training) -> None:
        self._training = training
        self._model, self._optimizer = build_model(
            training.workload, training.cell, training.classes, training.request.seed
        )

    def start(self, values: "Sequence[Array]") -> "list[list[Array]]":
        """Set every variable, in the order of `capture`; returns each replica's untrained state."""
        for variable, value in zip([*self._model.variables, *self._optimizer.variables], values, strict=True):
            variable.assign(value)
        return [self._statistics() for _ in range(self._training.cell.replicas_per_update)]

    def shares(self, batch: "tuple[Array, Array]", own: "Sequence[list[Array]]") -> list[Share]:
        """Forward and backward on a global batch, share by share; no weight is changed.

        `own[i]` is replica i's untrained state, which goes on from its own share alone. A model with
        synchronised batch normalisation sees the whole batch at once.
        """
        import tensorflow as tf

        whole = any(getattr(layer, "synchronized", False) for layer in self._model._flatten_layers())
        shares = 1 if whole else self._training.cell.replicas_per_update
        x, y = batch
        size = len(x) // shares
        gradients_of = self._gradients_of(shares)
        found = []
        for i in range(shares):
            for variable, value in zip(self._model.non_trainable_variables, own[i], strict=True):
                variable.assign(value)
            part = slice(i * size, (i + 1) * size)
            loss, gradients = gradients_of(tf.constant(x[part]), tf.constant(y[part]))
            found.append(Share(gradients, loss, self._statistics()))
        return found

    def apply(self, shares: Sequence[Share]) -> list[Any]:
        """One step of the optimizer with the sum of the shares' gradients, which it returns."""
        summed: list[Any] = []
        for share in shares:
            summed = [a + b for a, b in zip(summed, share.gradients, strict=True)] if summed else share.gradients
        self._optimizer.apply_gradients(zip(summed, self._model.trainable_variables, strict=True))
        return summed

    def state(self, own: "Sequence[list[Array]]") -> "list[Array]":
        """Every variable, in the order of `capture`; an untrained one has a leading axis of replicas."""
        import numpy as np

        untrained = iter(np.stack(copies) for copies in zip(*own, strict=True))
        captured = capture(self._model, self._optimizer)
        return [next(untrained) if state.kind == "statistic" else state.copies[0] for state in captured]

    def _statistics(self) -> "list[Array]":
        return [variable.numpy() for variable in self._model.non_trainable_variables]

    def _gradients_of(self, shares: int) -> Any:
        """Forward and backward of one share: (x, y) -> (its part of the loss, gradients)."""
        import tensorflow as tf

        training, model, optimizer = self._training, self._model, self._optimizer

        def gradients_of(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                examples = training.loss(y, model(x, training=True))
                loss = tf.reduce_sum(examples) / training.cell.global_batch_size
                if model.losses:
                    loss += tf.add_n(model.losses) / shares
                scaled = optimizer.scale_loss(loss)
            return loss, [tf.convert_to_tensor(g) for g in tape.gradient(scaled, model.trainable_variables)]

        if training.cell.xla and any("seed_generator" in variable.path for variable in model.variables):
            # XLA draws other random numbers from the same seed, so a model with dropout is compiled here too.
            return tf.function(gradients_of, jit_compile=True, autograph=False)
        return gradients_of
