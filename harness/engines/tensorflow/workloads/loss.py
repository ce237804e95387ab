"""The loss of a model, one number an example: the step sums and divides by the global batch itself."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from harness.engines.tensorflow.own_training import own_training
from harness.engines.tensorflow.structures import ALONE, by_place, fits, has_targets
from harness.engines.tensorflow.workloads.keras_losses import (
    ends_in_softmax,
    is_mean_of_last_axis,
    is_of_keras,
    unreduced,
    wants_one_hot,
)
from harness.engines.tensorflow.workloads.shapes import output_names, shapes_of
from harness.engines.tensorflow.workloads.targets import listed, target_places
from harness.errors import Unsupported, UsageError

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


class PerExampleLoss(Protocol):
    """(y_true [batch, ...], y_pred [batch, ...]) -> [batch] float32, without reduction."""

    def __call__(self, y_true: Any, y_pred: Any) -> "tf.Tensor":
        """One value an example."""

    def weighted(self, y_true: Any, y_pred: Any, weights: Any) -> "tf.Tensor":
        """The same times `weights`, one an example [batch] or [batch, 1], or one for each place of its loss
        [batch, ...]; of several outputs, these for all, or in a structure for each. Raises UsageError where they are of
        other places, or of other outputs."""


def loss_of(model: "keras.Model", by_share: bool = True) -> PerExampleLoss:
    """The loss that a model is trained by, one value an example.

    A compiled model brings its own loss; class numbers are one-hot encoded for the categorical ones. Any other
    model gets sparse categorical cross-entropy, on logits unless the model ends in a softmax. Axes beyond the batch
    are averaged, as Keras' `sum_over_batch_size` would, and what the model's output masks is left out of that, as it is
    by Keras: each replica divides by what its own share has. Where a step is not `by_share` that is Unsupported.
    Regularisation (`model.losses`) is not part of it. Of several outputs it is the sum of their losses, by their
    weights (`LossOfSeveral`). Raises Unsupported for one output compiled with several losses and for a loss that is
    no mean, and UsageError for one without a loss that says what it means.
    """
    _must_be_means(model)
    outputs = shapes_of(model)[1]
    if isinstance(outputs, Mapping):
        return LossOfSeveral(model, outputs, by_share)
    own = _own_loss(model)
    if own is None and outputs[-1:] in ((), (1,)):
        raise UsageError(
            f"model: '{model.name}' has one output and no loss, expected a compiled one (such as binary_crossentropy)"
        )
    return _of_one(model, own, None if own is None else _only_weight(model), by_share)


def loss_for(model: "keras.Model", targets: Any, by_share: bool = True) -> PerExampleLoss | None:
    """`loss_of` a model with such targets, which are checked (`check_targets`); None where the loss is what its own
    train_step or compute_loss makes of them: it is compiled without one, or uncompiled and cross-entropy is none of
    them."""
    its_own = makes_its_loss(model)
    if its_own and model.compiled:
        return None
    try:
        loss = loss_of(model, by_share)
        if has_targets(targets):
            check_targets(model, targets)
    except UsageError:
        if its_own:
            return None
        raise
    return loss


def makes_its_loss(model: "keras.Model") -> bool:
    """Whether a model trains by its own train_step or compute_loss, and was compiled with no loss."""
    import keras

    compiled = keras.tree.flatten(model.loss) if model.compiled else []
    return bool(own_training(model)) and all(loss is None for loss in compiled)


def takes_classes(model: "keras.Model") -> dict[str, bool]:
    """By the place of each output whether a target may be the number of a class, as sparse and categorical losses take
    it; of a loss of the user's own nobody knows, and the model's output is one of classes to it."""
    outputs = shapes_of(model)[1]
    if not isinstance(outputs, Mapping):
        return {ALONE: _of_classes(_own_loss(model))}
    losses = _of_each(model, [*outputs], "loss", model.loss if model.compiled else None)
    return {
        place: _of_classes(None if loss is None else unreduced(loss))
        for place, loss in zip(outputs, losses, strict=True)
    }


def _of_classes(loss: Callable[..., Any] | None) -> bool:
    """Whether it is none of those of Keras that take numbers as the output has them."""
    from keras import losses

    sparse = losses.SparseCategoricalCrossentropy
    is_sparse = loss is losses.sparse_categorical_crossentropy or isinstance(getattr(loss, "__self__", None), sparse)
    return loss is None or is_sparse or wants_one_hot(loss) or not is_of_keras(loss)


def _per_example(model: "keras.Model", own: Callable[..., Any] | None, by_share: bool) -> Callable[..., Any]:
    """The loss of one output, which is the model's `own` or cross-entropy: (y_true, y_pred, weights of its places where
    there are such) -> [batch]."""
    import keras
    import tensorflow as tf

    one_hot, from_logits = own is not None and wants_one_hot(own), own is None and not ends_in_softmax(model)

    def per_example(y_true: "tf.Tensor", y_pred: "tf.Tensor", weights: "tf.Tensor | None" = None) -> "tf.Tensor":
        mask = _mask_of(y_pred)
        if mask is not None and not by_share:
            raise _masked(model.name)
        y_pred = tf.cast(y_pred, tf.float32)
        if own is None:
            values = keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=from_logits)
            values = _of_places(values, weights, model.name)
            return values if values.shape.rank == 1 else _mean_of_each(_unmasked(values, mask))
        of_classes = len(y_true.shape) < len(y_pred.shape)
        if of_classes and one_hot:
            y_true = tf.one_hot(tf.cast(y_true, tf.int32), y_pred.shape[-1])  # Keras' fit hands over floats
        elif of_classes and y_pred.shape[-1] == 1:  # [batch] against [batch, 1] would broadcast to [batch, batch]
            y_true = tf.expand_dims(tf.cast(y_true, tf.float32), -1)
        if y_pred.shape.rank == 1 and is_mean_of_last_axis(own):  # which would be the batch
            y_true = tf.expand_dims(y_true, -1) if len(y_true.shape) == 1 else y_true
            y_pred = tf.expand_dims(y_pred, -1)
        given = own(y_true, y_pred)
        if given is None:
            raise UsageError(f"model: '{model.name}': its loss gives None, expected one value an example; return them")
        values = _one_each(tf.cast(given, tf.float32), y_pred, model.name, known=is_of_keras(own))
        values = _of_places(values, weights, model.name)
        return _mean_of_each(_unmasked(values, mask))

    return per_example


class LossOfSeveral:
    """The sum of the losses of a model's outputs, each times its weight: (targets, predictions) -> [batch] float32.

    `each` has one of each output, in Keras' order, as its `fit` takes them: None of one that nothing is trained by.
    Raises UsageError where the model was compiled with none, or with such as fit no output.
    """

    def __init__(self, model: "keras.Model", outputs: Mapping[str, Any], by_share: bool) -> None:
        losses = _of_each(model, [*outputs], "loss", model.loss if model.compiled else None)
        if not any(loss is not None for loss in losses):
            raise UsageError(
                f"model: '{model.name}' has its outputs in a structure ({', '.join(outputs)}) and no loss, expected a "
                "compiled one, with a loss for each"
            )
        weights = _of_each(model, [*outputs], "loss_weights", model._compile_loss._user_loss_weights)
        self.each = [
            None if loss is None else _of_one(model, unreduced(loss), weight, by_share)
            for loss, weight in zip(losses, weights, strict=True)
        ]
        self._model, self._outputs = model, [*outputs]

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        import tensorflow as tf

        return tf.add_n([loss(*pair) for loss, pair, _ in self._pairs(y_true, y_pred, {})])

    def weighted(self, y_true: Any, y_pred: Any, weights: Any) -> Any:
        """As PerExampleLoss has it."""
        import tensorflow as tf

        given = by_place(weights)
        if given.keys() not in ({ALONE}, set(self._outputs)):
            raise UsageError(
                f"model: '{self._model.name}' gives {listed(self._outputs)}, and weights are {listed(given)}, expected "
                "those of each output, in the same structure, or one tensor for all"
            )
        pairs = self._pairs(y_true, y_pred, given)
        return tf.add_n([loss.weighted(*pair, of_output) for loss, pair, of_output in pairs])

    def _pairs(
        self, y_true: Any, y_pred: Any, weights: Mapping[str, Any]
    ) -> Iterator[tuple[PerExampleLoss, tuple[Any, Any], Any]]:
        """Each loss that there is, with its target and prediction, and what they are weighed by."""
        targets, predictions = by_place(y_true), by_place(y_pred)
        places = target_places(self._model, self._outputs, targets)
        for at, loss in zip(self._outputs, self.each, strict=True):
            if loss is not None:
                yield loss, (targets[places[at]], predictions[at]), weights.get(at, weights.get(ALONE))


def _of_each(model: "keras.Model", outputs: list[str], key: str, given: Any) -> list[Any]:
    """What `compile` was given under a key, for each output: one for all, a list in their order, or a dict by their
    places or names, which may leave some out. UsageError where it is of others."""
    import keras

    if not isinstance(given, dict | list | tuple):
        return [given] * len(outputs)
    if not isinstance(given, dict):
        flat = keras.tree.flatten(given)
        found = dict(zip(outputs, flat, strict=True)) if len(flat) == len(outputs) else {}
    else:
        found, names = by_place(given), dict(zip(output_names(model), outputs, strict=False))
        found = {names.get(place, place): one for place, one in found.items()}
    if not found or not found.keys() <= set(outputs):
        raise UsageError(
            f"model: '{model.name}' is compiled with {len(given)} entries of {key}, and its outputs are "
            f"{', '.join(outputs)}: expected one for each of them, or one for all"
        )
    return [found.get(place) for place in outputs]


def _only_weight(model: "keras.Model") -> float | None:
    """What `compile` was given under `loss_weights` for one output and its loss: a number, in a list or dict or not."""
    import keras

    weights = keras.tree.flatten(model._compile_loss._user_loss_weights)
    if len(weights) != 1:
        raise UsageError(
            f"model: '{model.name}' is compiled with {len(weights)} loss_weights and one loss, expected one"
        )
    only: float | None = weights[0]
    return only


def _of_one(
    model: "keras.Model", own: Callable[..., Any] | None, weight: float | None, by_share: bool
) -> PerExampleLoss:
    """The loss of one output, as `_per_example` has it, times its weight."""
    per_example = _per_example(model, own, by_share)
    if weight is None:
        return _as_fit_takes_it(per_example)
    times: float = weight
    return _as_fit_takes_it(lambda *given: times * per_example(*given))


def _masked(name: str) -> Unsupported:
    return Unsupported(
        f"model: '{name}' masks its output: each replica takes the mean of what its own share has left, and the step "
        "of a mesh is written for the whole batch"
    )


def _as_fit_takes_it(per_example: Callable[..., Any]) -> PerExampleLoss:
    """`per_example`, which Keras' `fit` can be given too: Keras would apply a mask, and weights of places, to what is
    their mean already."""
    import keras
    import tensorflow as tf

    class LossOfEach(keras.losses.Loss):  # type: ignore[misc]
        def __call__(self, y_true: Any, y_pred: Any, *of_fit: Any) -> Any:
            if not of_fit:
                return per_example(y_true, y_pred)
            [weights] = of_fit
            if _mask_of(y_pred) is None and (weights is None or len(weights.shape) == 1):
                return super().__call__(y_true, y_pred, weights)
            losses = per_example(y_true, y_pred) if weights is None else self.weighted(y_true, y_pred, weights)
            return tf.reduce_mean(losses) / tf.distribute.get_strategy().num_replicas_in_sync

        def weighted(self, y_true: Any, y_pred: Any, weights: Any) -> Any:
            if len(weights.shape) == 2 and weights.shape[-1] == 1:
                weights = tf.squeeze(weights, -1)
            if len(weights.shape) > 1:
                return per_example(y_true, y_pred, weights)
            losses = per_example(y_true, y_pred)
            return losses * tf.cast(weights, losses.dtype)

        def call(self, y_true: Any, y_pred: Any) -> Any:
            return per_example(y_true, y_pred)

    return LossOfEach(name="per_example")


def _of_places(values: "tf.Tensor", weights: "tf.Tensor | None", name: str) -> "tf.Tensor":
    """`values` of places times their `weights`, where there are such. UsageError where these are of other places."""
    import tensorflow as tf

    if weights is None:
        return values
    if not values.shape.is_compatible_with(weights.shape):
        raise UsageError(
            f"model: '{name}': an example has weights of the shape {tuple(weights.shape[1:])} and a loss of the shape "
            f"{tuple(values.shape[1:])}, expected one number an example, or weights of the loss's shape"
        )
    return values * tf.cast(weights, values.dtype)


def _mask_of(y_pred: "tf.Tensor") -> "tf.Tensor | None":
    """What Keras hands on with a tensor, as its attribute."""
    return getattr(y_pred, "_keras_mask", None)


def _unmasked(values: "tf.Tensor", mask: "tf.Tensor | None") -> "tf.Tensor":
    """`values` of places, where there is a `mask` of those, so that their mean is that of the places it leaves."""
    import tensorflow as tf

    if mask is None or values.shape.rank != mask.shape.rank:
        return values
    left = tf.cast(mask, values.dtype)
    return values * left * tf.math.divide_no_nan(tf.cast(tf.size(left), values.dtype), tf.reduce_sum(left))


def check_targets(model: "keras.Model", targets: Any) -> None:
    """UsageError where not each output of a model has its target among these arrays, and where a model without a loss
    of its own, which gets cross-entropy, has targets that are no classes."""
    import numpy as np

    outputs = shapes_of(model)[1]
    target_places(model, outputs if isinstance(outputs, Mapping) else [ALONE], by_place(targets))
    if isinstance(outputs, Mapping) or _own_loss(model) is not None:
        return
    *places, classes = outputs
    if classes is None or not (np.issubdtype(targets.dtype, np.integer) and fits(tuple(places), targets.shape[1:])):
        raise UsageError(
            f"model: '{model.name}' has no loss of its own, and a target is {targets.dtype} of the shape "
            f"{targets.shape[1:]}, expected a compiled model, or classes: integers of the shape {tuple(places)}"
        )
    if targets.min() < 0 or targets.max() >= classes:
        raise UsageError(
            f"model: '{model.name}' has {classes} outputs, and targets are from {targets.min()} to {targets.max()}, "
            f"expected classes from 0 to {classes - 1}"
        )


def _one_each(values: "tf.Tensor", y_pred: "tf.Tensor", name: str, known: bool) -> "tf.Tensor":
    """`values`, which are one an example: UsageError where they are not, or where only a step can tell, an assertion
    in it, unless it is `known`: what Keras itself computes gets no operation more."""
    import tensorflow as tf

    def wrong(gives: str) -> str:
        return f"model: '{name}': its loss gives {gives}, expected one an example, of the shape [batch]"

    rank, batch = values.shape.rank, y_pred.shape[0]
    count = values.shape[0] if rank else None
    if rank == 0:
        raise UsageError(wrong("one value for the whole batch"))
    if None not in (count, batch) and count != batch:
        raise UsageError(wrong(f"{count} for a batch of {batch}"))
    if known or None not in (count, batch):
        return values
    first = tf.concat([tf.shape(values), [0]], axis=0)[0]  # 0 of a value without axes
    told = wrong("another number of values than of examples")
    with tf.control_dependencies([tf.debugging.assert_equal(first, tf.shape(y_pred)[0], told)]):
        return tf.identity(values)


def _mean_of_each(values: "tf.Tensor") -> "tf.Tensor":
    """[batch, ...] -> [batch]."""
    import tensorflow as tf

    return tf.reduce_mean(tf.reshape(values, (tf.shape(values)[0], -1)), axis=1)


def _own_loss(model: "keras.Model") -> Callable[..., Any] | None:
    """The unreduced loss that the user compiled the model with, or None."""
    import keras

    compiled: Any = model.loss if model.compiled else None
    only, *others = keras.tree.flatten(compiled) or [None]
    if others:
        raise Unsupported(f"model: '{model.name}' is compiled with {len(compiled)} losses, and a trial trains by one")
    names = getattr(model, "output_names", None)
    if isinstance(compiled, dict) and names and [*compiled] != names:
        given = f"model: '{model.name}' is compiled with a loss of {listed(compiled)}"
        raise UsageError(f"{given}, expected one of its output, {listed(names)}")
    return None if only is None else unreduced(only)


def _must_be_means(model: "keras.Model") -> None:
    """Raises Unsupported where Keras would not take the mean over the batch of what a model is compiled with; what its
    own train_step makes of that is its own."""
    import keras

    if not model.compiled or own_training(model):
        return
    for loss in keras.tree.flatten(model.loss):
        if isinstance(loss, keras.losses.Loss) and loss.reduction not in ("sum_over_batch_size", "mean"):
            raise Unsupported(
                f"model: '{model.name}' is compiled with a loss of reduction={loss.reduction!r}, and a trial trains by "
                "the mean over the global batch; leave the reduction out, loss_weights multiplies that mean"
            )
