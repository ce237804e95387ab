"""One update on one device: what each replica's share of a global batch gives, and what the sum of it does."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.counting import clips, clips_what_it_is_given, sums_what_it_is_given
from harness.engines.tensorflow.reference.lockstep import Lockstep
from harness.engines.tensorflow.reference.replica_context import in_sync, said_to_be_in_sync
from harness.engines.tensorflow.server_state import FusedOptimizer
from harness.engines.tensorflow.state import read
from harness.engines.tensorflow.structures import Batch, arrays_in
from harness.engines.tensorflow.training import Training, build_model, share_gradients
from harness.errors import Unprovable

if TYPE_CHECKING:
    from harness.protocol.state import Array

ANOTHER_MODEL = (
    "the model's function builds another model each time it is called, so that no second one can be held against the "
    "first: draw what is no weight from np.random, random or tf.random, which are seeded before each call, or from a "
    "generator with a seed that is made within the function"
)


@dataclass(frozen=True)
class Share:
    """What one replica makes of its share of a global batch.

    `gradients` has one a trained weight, of the loss as the optimizer scales it and as the replica hands it over to be
    summed: a tensor, tf.IndexedSlices, or None where the loss does not depend on the weight. `loss` is a scalar tensor,
    the share's part of the mean over the global batch and of the regularisation; `statistics` is the untrained state
    that this replica goes on with.
    """

    gradients: list[Any]
    loss: Any
    statistics: "list[Array]"


class SingleDevice:
    """A second model of a training's cell, without tf.distribute, on the device whose scope it is built and used in.

    An update is `shares` and then `apply`, so that what becomes of a gradient on its way (missing, doubled, averaged,
    late) can be tried at the price of an `apply`.

    Shares are run eagerly. Where they may be `traced` they are runs of one program, unless a share exchanges something
    or asks which it is.
    """

    def __init__(self, training: Training, traced: bool = False) -> None:
        self._training = training
        self._traced = traced
        self._told = in_sync(training)
        """How many replicas a share hears of."""
        with said_to_be_in_sync(in_sync(training)):
            self._model, self._optimizer = build_model(
                training.workload, training.cell, training.classes, training.request.seed, alike=False
            )
        self._traced |= self._overwrites_weights()  # TensorFlow cannot differentiate float8 layers eagerly
        self._assigned: list[Any] = []
        """Trained weights that layers assign themselves, of which each replica has its own copy until the update."""
        self._lockstep = Lockstep(self._model.non_trainable_variables, lambda: self._assigned)
        self._clip = self._clip_taken_off()

    def _overwrites_weights(self) -> bool:
        """Whether Keras overwrites weights with their gradients. Raises Unprovable where several replicas do, each, or
        what several parts of a batch give is added up."""
        of_each = [weight.path for weight in self._model.trainable_variables if weight.overwrite_with_gradient]
        if of_each and self._training.cell.micro_batches > 1:
            raise Unprovable(
                f"micro_batches: Keras overwrites '{of_each[0]}' with its gradient, as float8 layers' scales, which "
                "must not be added up"
            )
        if of_each and self._replicas > 1:
            raise Unprovable(
                f"each replica overwrites '{of_each[0]}' with what its own share gives, as float8 layers do with their "
                "scales, and the reference has one for all"
            )
        return bool(of_each)

    def trace(self) -> None:
        """From now on shares are runs of one program, where they may be; what XLA compiled is one already."""
        if not (self._traced or self._training.cell.xla):
            self._traced = True
            self.__dict__.pop("_gradients_of", None)

    @property
    def _replicas(self) -> int:
        return self._training.cell.replicas_per_update

    def start(self, values: "Sequence[Array]") -> "list[list[Array]]":
        """Set every variable, in the order of `capture`; returns each replica's untrained state. Raises Unprovable
        where it has others."""
        variables = [*self._model.variables, *self._optimizer.variables]
        if [tuple(variable.shape) for variable in variables] != [value.shape for value in values]:
            raise Unprovable(ANOTHER_MODEL)
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        return [[variable.numpy() for variable in self._model.non_trainable_variables] for _ in range(self._replicas)]

    def shares(self, batch: Batch, own: "Sequence[list[Array]]") -> list[Share]:
        """Forward and backward on a global batch, share by share; no weight is changed but by a layer.

        `own[i]` is replica i's untrained state, which goes on from its own share alone, unless a variable was declared
        to be aggregated. A layer that assigns a trained weight does so to a copy of each share's own, of which the last
        one's is kept: replicas that make different ones of it do not agree. Raises Unprovable with the reason.
        """

        before = [weight.value.read_value() for weight in self._model.trainable_variables] if len(own) > 1 else []
        computed = self._computed(batch, own)
        if before and self._assigned_since(before):
            computed = self._computed(batch, own)
        return [Share(self._handed_over(gradients), loss, state) for (loss, gradients), state in computed]

    def _computed(self, batch: Batch, own: "Sequence[list[Array]]") -> Any:
        """Of each share ((loss, gradients), untrained state)."""

        def share(i: int) -> Any:
            return self._on_share(self._gradients_of, batch, i, len(own))

        layers = self._model._flatten_layers()
        with self._as_replicas():
            try:
                return self._lockstep.run(share, own, layers)
            except Exception as error:  # Keras raises what it likes for what a layer raised
                if self._lockstep.refused:
                    raise Unprovable(self._lockstep.refused) from error
                if self._training.cell.xla or not (self._traced and self._lockstep.traced_apart):
                    raise
                self._traced = False
                del self._gradients_of
                return self._lockstep.run(share, own, layers)

    def _assigned_since(self, before: Sequence[Any]) -> bool:
        """Whether shares assigned trained weights, so that a later one began with what an earlier one had made of them.

        Those are as `before` again, and from now on each share's own. Raises Unprovable where replicas agree on them.
        """
        import tensorflow as tf

        known = {id(weight) for weight in self._assigned}
        weights = [*zip(self._model.trainable_variables, before, strict=True)]
        changed = [(w, value) for w, value in weights if not tf.reduce_all(tf.equal(w.value, value))]
        new = [weight for weight, _ in changed if id(weight) not in known]
        if aggregated := [weight.path for weight in new if weight.aggregation != "none"]:
            raise Unprovable(
                f"a layer assigns '{aggregated[0]}', a trained weight that replicas aggregate where it is assigned, "
                "and the reference does so of untrained variables alone"
            )
        if new:
            self._assigned.extend(new)
            for weight, value in changed:
                weight.assign(value)
        return bool(new)

    @property
    def is_program(self) -> bool:
        """Whether shares are runs of a program; they are not where they exchange something."""
        return self._traced or self._training.cell.xla

    def as_programs(self, values: "Sequence[Array]", batch: Batch) -> "list[Array]":
        """The summed gradients at `values`, of each share by a program of its own, which is given what the shares
        exchanged when they ran eagerly. No weight is changed."""
        import tensorflow as tf

        own, found = self.start(values), []
        self.shares(batch, own)

        def share(i: int) -> Any:
            program = tf.function(self._part_by_part(self._function()), autograph=False)
            return self._on_share(program, batch, i, len(own))

        with self._as_replicas():
            for i in range(len(own)):
                if self._assigned:
                    self.start(values)
                _, gradients = self._lockstep.again(share, i, own)
                found.append(self._handed_over(gradients))
        return self._dense(_summed(found))

    @contextlib.contextmanager
    def _as_replicas(self) -> Iterator[None]:
        """While entered, shares hear what replicas hear."""
        with said_to_be_in_sync(self._told), self._lockstep.aggregated():
            yield

    def _function(self) -> Callable[[Any, Any], tuple[Any, list[Any]]]:
        """(x, y) of a share, or of a micro-batch of it -> its part of the loss, gradients."""
        return share_gradients(self._training, self._model, self._optimizer, self._training.cell.micro_batches)

    def _part_by_part(self, of_part: Any) -> Any:
        """`of_part` of each micro-batch of a share, one after the other, added up; itself where a share is one."""
        import tensorflow as tf

        parts = self._training.cell.micro_batches
        if parts == 1:
            return of_part

        def of_share(x: Any, y: Any) -> tuple[Any, list[Any]]:
            size = arrays_in(x)[0].shape[0] // parts

            def of_slice(first: int) -> tuple[Any, list[Any]]:
                found: tuple[Any, list[Any]] = of_part(
                    *tf.nest.map_structure(lambda values: values[first : first + size], (x, y))
                )
                return found

            loss, gradients = of_slice(0)
            for number in range(1, parts):
                more, of_weights = of_slice(number * size)
                loss, gradients = loss + more, _summed([gradients, of_weights])
            return loss, gradients

        return of_share

    def settle_scale(
        self, start: "Sequence[Array]", moved: "Callable[[], Sequence[Array]]", batch: Batch, tolerance: float
    ) -> None:
        """Find out what share of an update a replica is to have, where that is not the harness' own to say.

        Of each trained weight a gradient may differ by `tolerance` of it, and by what it differs at what `moved` makes,
        the values of `start` with a little noise.
        """

    def apply(self, shares: Sequence[Share]) -> "list[Array]":
        """One step of the optimizer with the sum of the shares' gradients, which it returns as arrays."""
        summed = _summed([share.gradients for share in shares])
        with said_to_be_in_sync(in_sync(self._training)):
            self._optimizer.apply_gradients(zip(summed, self._model.trainable_variables, strict=True))
        return self._dense(summed)

    def _dense(self, gradients: Sequence[Any]) -> "list[Array]":
        return [dense_gradient(g, w) for g, w in zip(gradients, self._model.trainable_variables, strict=True)]

    def sizes(self, shares: Sequence[Share]) -> "Iterator[Array]":
        """How large each element's gradients are that a sum adds up: the sum of their absolute values, by weight."""
        import numpy as np

        def size(part: Any, weight: Any) -> "Array":
            gradient = dense_gradient(part, weight)
            return np.abs(gradient, dtype=np.result_type(gradient.dtype, np.float32))

        parts = zip(*(share.gradients for share in shares), strict=True)
        weights = self._model.trainable_variables
        for of_weight, weight in zip(parts, weights, strict=True):
            yield functools.reduce(np.add, (size(part, weight) for part in of_weight))

    def state(self, own: "Sequence[list[Array]]") -> "Iterator[Array]":
        """Every variable, in the order of `capture`, read when it is asked for; an untrained one has a leading axis of
        replicas."""
        import numpy as np

        untrained = iter([np.stack(copies) for copies in zip(*own, strict=True)])
        for state in read(self._model, self._optimizer):
            yield next(untrained) if state.kind == "statistic" else state.copies[0]

    def _on_share(self, function: Any, batch: Batch, i: int, count: int) -> Any:
        """`function` of share `i` of a global batch of `count` of them."""
        import tensorflow as tf

        size = len(arrays_in(batch)[0]) // count
        part = slice(i * size, (i + 1) * size)
        return self._as_called(function, *tf.nest.map_structure(lambda values: tf.constant(values[part]), batch))

    def _as_called(self, function: Any, *given: Any) -> Any:
        """`function` where the step calls it: workers of parameter servers run it as no replica's, so that a layer that
        asks for its replica context gets none."""
        import tensorflow as tf

        if not (self._training.cell.asynchronous and isinstance(self._training.optimizer, FusedOptimizer)):
            return function(*given)
        return tf.distribute.get_replica_context().merge_call(lambda _: function(*given))

    @functools.cached_property
    def _gradients_of(self) -> Any:
        """Forward and backward of one share: (x, y) -> (its part of the loss, gradients)."""
        import tensorflow as tf

        gradients_of: Any = self._function()
        # XLA draws other random numbers from the same seed, so what is compiled is held against what is compiled.
        xla = self._training.cell.xla
        if xla or self._traced:
            gradients_of = tf.function(gradients_of, jit_compile=xla, autograph=False)
        return self._part_by_part(gradients_of)

    def _handed_over(self, gradients: list[Any]) -> list[Any]:
        """What a replica gives to be summed: Keras' optimizers clip before they sum, and leave a step out before; the
        kernels of parameter servers and meshes take dense gradients."""
        if isinstance(self._training.optimizer, FusedOptimizer):
            import tensorflow as tf

            return [gradient if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients]
        if self._clip is None:
            return gradients
        scale, given = self._optimizer.scale_loss(1.0), [gradient for gradient in gradients if gradient is not None]
        clipped = self._clip([times_gradient(gradient, 1 / scale) for gradient in given])
        if hasattr(self._optimizer, "inner_optimizer"):
            clipped = _unless_left_out(clipped, given, self._optimizer.check_finite(given))
        found = iter(clipped)
        return [None if gradient is None else times_gradient(next(found), scale) for gradient in gradients]

    def _clip_taken_off(self) -> Any:
        """How the optimizer clips, which it no longer does by itself; None where it does not, or is left to.

        So of one replica, too, a fault is tried behind the clip, which would hide a gradient that is counted twice.
        Raises Unprovable where several clip, or sum, what nobody knows.
        """
        optimizer = getattr(self._optimizer, "inner_optimizer", self._optimizer)
        if not clips(optimizer):
            if self._replicas > 1 and not sums_what_it_is_given(optimizer):
                raise Unprovable(
                    f"{type(optimizer).__name__} may change gradients before they are summed, on each replica, so that "
                    "the reference cannot make the same update"
                )
            return None
        if not clips_what_it_is_given(optimizer):
            if self._replicas == 1:
                return None
            raise Unprovable(
                f"{type(optimizer).__name__} may change gradients before it clips them, on each replica, so that the "
                "reference cannot make the same update"
            )
        clip, optimizer._clip_gradients = optimizer._clip_gradients, list
        return clip


def _unless_left_out(clipped: list[Any], gradients: list[Any], finite: Any) -> list[Any]:
    """The `clipped` gradients, or where not all are `finite` what they were, by which the optimizer sees that and
    leaves the step out: a clip to a value would hide it. Chosen in the program, where the shares are traced."""
    import tensorflow as tf

    def chosen(one: Any, other: Any) -> Any:
        if isinstance(one, tf.IndexedSlices):
            return tf.IndexedSlices(chosen(one.values, other.values), one.indices, one.dense_shape)
        return tf.where(finite, one, tf.cast(other, one.dtype))

    return [*map(chosen, clipped, gradients)]


def _summed(shares: Sequence[Sequence[Any]]) -> list[Any]:
    """By weight, the sum of what the shares give for it."""
    return [summed_gradient(parts) for parts in zip(*shares, strict=True)]


def summed_gradient(parts: Sequence[Any]) -> Any:
    """The sum of the shares' gradients of one weight. Sparse ones stay sparse, as they do under tf.distribute: an
    index that occurs twice is no error, and Keras' Adam squares each by itself."""
    import tensorflow as tf

    if all(part is None for part in parts):
        return None
    if all(isinstance(part, tf.IndexedSlices) for part in parts):
        values, indices = (tf.concat([getattr(p, name) for p in parts], axis=0) for name in ("values", "indices"))
        return tf.IndexedSlices(values, indices, parts[0].dense_shape)
    return tf.add_n([tf.convert_to_tensor(part) for part in parts])


def times_gradient(gradient: Any, factor: Any) -> Any:
    """A gradient of one weight times a number; sparse ones stay sparse, and none stays none."""
    import tensorflow as tf

    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(times_gradient(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)


def dense_gradient(gradient: Any, weight: Any) -> "Array":
    """A gradient as an array of the weight's shape; zeros where there is none."""
    import numpy as np
    import tensorflow as tf

    if gradient is None:
        return np.zeros(weight.shape, np.float32)
    array: Array = tf.convert_to_tensor(gradient).numpy()
    return array
