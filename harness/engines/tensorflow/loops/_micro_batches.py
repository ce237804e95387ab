"""A replica's batch in several parts, one after the other, whose gradients are added up: `micro_batches`.

There is one reduction and one update of them all, so that a batch may be larger than what forward and backward have
room for. The parts are unrolled: in a loop no layer could exchange anything between replicas, and operations are
counted in the graph.
"""

from collections.abc import Callable
from typing import Any

GradientsOf = Callable[[Any, Any], tuple[Any, list[Any]]]
"""Forward and backward: (x, y) -> (part of the mean loss, gradients, None of a weight that has none)."""


def accumulated(gradients_of: GradientsOf, parts: int) -> GradientsOf:
    """The same of a batch in so many equal parts, each begun when the one before it has been added up: TensorFlow would
    run them side by side, and hold what all of them need."""
    import tensorflow as tf

    if parts == 1:
        return gradients_of

    def of_all(x: Any, y: Any) -> tuple[Any, list[Any]]:
        cut = [tf.split(values, parts) for values in tf.nest.flatten((x, y))]
        loss, gradients = None, None
        for part in zip(*cut, strict=True):
            with tf.control_dependencies(_tensors_of([loss, *(gradients or ())])):
                own_loss, own = gradients_of(*tf.nest.pack_sequence_as((x, y), part))
                loss = _sum_of(loss, own_loss)
                gradients = [*map(_sum_of, gradients or [None] * len(own), own)]
        return loss, gradients or []

    return of_all


def _sum_of(one: Any, other: Any) -> Any:
    """Of two gradients of a weight, or losses, of which there may be none; sparse ones stay sparse."""
    import tensorflow as tf

    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, tf.IndexedSlices) and isinstance(other, tf.IndexedSlices):
        values, indices = (tf.concat([getattr(of, name) for of in (one, other)], 0) for name in ("values", "indices"))
        return tf.IndexedSlices(values, indices, one.dense_shape)
    return tf.convert_to_tensor(one) + tf.convert_to_tensor(other)


def _tensors_of(gradients: list[Any]) -> list[Any]:
    """Of those that there are; of a sparse one its values."""
    return [getattr(gradient, "values", gradient) for gradient in gradients if gradient is not None]
