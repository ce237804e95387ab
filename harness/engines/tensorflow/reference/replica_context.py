"""What a share of the reference is told of the other replicas: how many there are, and what they exchange."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

from harness.engines.tensorflow.training import Training

Combine = Callable[[list[Any]], Any]
"""What every share gets of what each has brought to a meeting."""


class MeetingShares(Protocol):
    """Where shares meet (`lockstep.Lockstep`)."""

    def meet(self, value: Any, combine: Combine) -> Any:
        """What `combine` makes of the values of all."""

    def not_traced(self, why: str) -> None:
        """Raises Unprovable where a share is being traced."""

    def refuse(self, why: str) -> NoReturn:
        """Raises Unprovable."""


def in_sync(training: Training) -> int:
    """The number of replicas that a layer of the step hears of where it asks the strategy.

    Where there is none it asks TensorFlow's default one: without a strategy, and on a mesh, which is none of
    tf.distribute.
    """
    return int(getattr(training.strategy, "num_replicas_in_sync", 1))


@contextlib.contextmanager
def said_to_be_in_sync(replicas: int) -> Iterator[None]:
    """While entered, TensorFlow's default strategy says that so many replicas are in sync.

    Layers, schedules of learning rates and Keras' own losses ask for that number. It stays the default strategy, so
    that `tf.distribute.has_strategy()` is as false as it was; nothing else of it can be put in its place.
    """
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    kind = type(strategy)

    class OfSeveral(kind):  # type: ignore[misc, valid-type]
        @property
        def num_replicas_in_sync(self) -> int:
            return replicas

    strategy.__class__ = OfSeveral
    try:
        yield
    finally:
        strategy.__class__ = kind


def summed(values: list[Any]) -> Any:
    """The sum of each part over all shares."""
    import tensorflow as tf

    return tf.nest.map_structure(lambda *parts: tf.add_n(list(parts)), *values)


def averaged(values: list[Any]) -> Any:
    """The mean of each part over all shares."""
    import tensorflow as tf

    return tf.nest.map_structure(lambda *parts: tf.add_n(list(parts)) / len(parts), *values)


def replica_context(meeting: MeetingShares, index: int, count: int) -> Any:
    """The replica context of share `index` of `count`: what it exchanges, and the gradient of that, are meetings."""
    import tensorflow as tf

    class ShareContext(tf.distribute.ReplicaContext):  # type: ignore[misc]
        @property
        def num_replicas_in_sync(self) -> int:
            return count

        @property
        def replica_id_in_sync_group(self) -> Any:
            meeting.not_traced("a layer asks which replica it is on, and the one program of the shares cannot say")
            return tf.constant(index)

        def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
            kind = str(getattr(reduce_op, "value", reduce_op)).upper()
            return _of_each_part(value, meeting, _reduced(meeting, averaged if kind == "MEAN" else summed))

        def all_gather(self, value: Any, axis: Any, options: Any = None) -> Any:
            return _of_each_part(value, meeting, _gathered(meeting, axis, index))

        def _merge_call(self, merge_fn: Any, args: Any, kwargs: Any) -> Any:
            meeting.refuse("a layer merges its replicas (merge_call), which takes a strategy: the reference has none")

    return ShareContext(tf.distribute.get_strategy(), 0)


def _of_each_part(value: Any, meeting: MeetingShares, exchange: Callable[..., Any]) -> Any:
    """What a differentiable `exchange` of tensors makes of a structure of them."""
    import tensorflow as tf

    parts = tf.nest.flatten(value)
    if any(isinstance(part, tf.IndexedSlices) for part in parts):
        meeting.refuse("a layer exchanges tf.IndexedSlices between replicas, which the reference cannot")
    return tf.nest.pack_sequence_as(value, tf.nest.flatten(exchange(*parts)))


def _reduced(meeting: MeetingShares, combine: Combine) -> Any:
    """(tensors) -> what `combine` makes of those of all shares; the gradient of a sum over all is one, too."""
    import tensorflow as tf

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def reduced(*parts: Any) -> Any:
        def gradient(*upstream: Any) -> Any:
            return tf.nest.flatten(reduced(*[tf.convert_to_tensor(one) for one in upstream]))

        return meeting.meet(list(parts), combine), gradient

    return reduced


def _gathered(meeting: MeetingShares, axis: Any, index: int) -> Any:
    """(tensors) -> those of all shares, one behind the other along an axis.

    All shares have made something of what this one brought: its gradient is the sum of theirs.
    """
    import tensorflow as tf

    def put_together(values: list[Any]) -> Any:
        return [(tf.concat(of, axis), [tf.shape(one)[axis] for one in of]) for of in zip(*values, strict=True)]

    def own_part(whole: Any, sizes: Sequence[Any]) -> Any:
        first = tf.add_n(list(sizes[:index])) if index else 0
        return tf.gather(whole, tf.range(first, first + sizes[index]), axis=axis)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def gathered(*parts: Any) -> Any:
        found = meeting.meet(list(parts), put_together)

        def gradient(*upstream: Any) -> Any:
            all_of_it = meeting.meet([tf.convert_to_tensor(one) for one in upstream], summed)
            return [own_part(whole, sizes) for whole, (_, sizes) in zip(all_of_it, found, strict=True)]

        return [whole for whole, _ in found], gradient

    return gathered
