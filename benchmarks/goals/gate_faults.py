"""Faults for the gate's matrix: what goes wrong with a gradient, a sum, a loss or a state, from an update on.

A fault works between the right step and the optimizer: the optimizer that a trial trains with is a subclass of Keras'
own whose sums, rates or slots go wrong, so it does the same under every strategy and in every loop, and hides from any
check of the reduction alone. `compressed` is the exception: it sits in the reduction itself. What the gate holds the
step against is built afterwards in the same process (`gate_case`) and has no fault.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

START = {"early": 0, "late": 5}
"""Updates that are right before the fault: a late one begins after the gate's first two and the clock's pilot."""
Wrong = Callable[[Any, "At"], Any]


@dataclass(frozen=True)
class At:
    """Where in a step a value is: of which tensor, on which replica, after how many updates."""

    tf: Any
    n: int
    """Replicas."""
    replica: Any
    updates: Any
    """Updates so far, a scalar tensor."""
    start: int
    held: Callable[[Any], Any]
    """A variable of this place that outlives the step, like the value."""
    size: float = 0.0

    @property
    def last(self) -> Any:
        """Whether this is the last replica."""
        return self.tf.equal(self.replica, self.n - 1)

    def before(self, value: Any) -> Any:
        """What `value` was in the update before; the value itself in the first."""
        variable = self.held(value)
        kept = self.tf.where(self.updates > 0, variable.read_value(), value)
        with self.tf.control_dependencies([kept]):
            stored = variable.assign(value)
        with self.tf.control_dependencies([stored]):
            return self.tf.identity(kept)

    def frozen(self, value: Any) -> Any:
        """What `value` was in the update in which the fault began."""
        variable = self.held(value)
        kept = self.tf.where(self.updates <= self.start, value, variable.read_value())
        with self.tf.control_dependencies([variable.assign(kept)]):
            return self.tf.identity(kept)


@dataclass(frozen=True)
class Fault:
    """One fault. `place` is what it is done to: each replica's `gradient`, their `sum`, `any` reduction, the `loss` of
    each replica, the `labels`, the learning `rate`, a `slot` of the optimizer, a `variable` of a layer."""

    place: str
    wrong: Wrong
    words: str
    tensors: str = "all"
    """Which: `all`, the `first`, the `biggest`."""
    alone: bool = True
    """Whether there is such a thing with one replica."""
    copies: bool = False
    """Whether there is such a thing only where each replica has a copy of the weights."""
    gross: bool = True
    family: str = ""
    """Of slight ones: what they are of different sizes of."""
    size: float = 0.0
    model: str = ""
    """The one model that has what goes wrong; empty is any."""


def _on_last(change: Wrong) -> Wrong:
    return lambda v, at: at.tf.where(at.last, change(v, at), v)


def _zero(v: Any, at: At) -> Any:
    return at.tf.zeros_like(v)


def _rolled(v: Any, at: At) -> Any:
    return at.tf.reshape(at.tf.roll(at.tf.reshape(v, [-1]), 1, 0), at.tf.shape(v))


def _noisy(v: Any, at: At) -> Any:
    seed = at.tf.stack([at.tf.cast(at.updates, at.tf.int32), at.tf.cast(at.replica, at.tf.int32)])
    return v * (1 + at.size * at.tf.cast(at.tf.random.stateless_normal(at.tf.shape(v), seed), v.dtype))


def _elements_lost(v: Any, at: At) -> Any:
    flat = at.tf.range(at.tf.size(v)) - at.tf.size(v) // 3
    lost = at.tf.logical_and(flat >= 0, flat < int(at.size))
    return at.tf.where(at.tf.reshape(lost, at.tf.shape(v)), at.tf.zeros_like(v), v)


def _rounded(v: Any, at: At) -> Any:
    """To so many bits of mantissa, by its bits: XLA would leave out a cast there and back."""
    if v.dtype != at.tf.float32:
        return v
    dropped = 23 - int(at.size)
    bits = at.tf.bitcast(v, at.tf.int32) + (1 << dropped >> 1)
    return at.tf.bitcast(at.tf.bitwise.bitwise_and(bits, -(1 << dropped)), at.tf.float32)


def _scaled(v: Any, at: At) -> Any:
    return v * at.tf.cast(1 + at.size, v.dtype)


def _lost_in_every(period: int) -> Wrong:
    return lambda v, at: at.tf.where(at.tf.equal(at.updates % period, 1), at.tf.zeros_like(v), v)


_missing, _doubled = _on_last(_zero), _on_last(lambda v, _: 2 * v)
_averaged: Wrong = lambda v, at: v / at.tf.cast(at.n, v.dtype)  # noqa: E731
_previous: Wrong = lambda v, at: at.before(v)  # noqa: E731
_stale: Wrong = lambda v, at: at.tf.where(at.last, at.before(v), v)  # noqa: E731

FAULTS = {
    "missing": Fault("gradient", _missing, "the last replica's gradient is missing", alone=False),
    "missing_first_replica": Fault(
        "gradient",
        lambda v, at: at.tf.where(at.replica == 0, at.tf.zeros_like(v), v),
        "the first one's is",
        alone=False,
    ),
    "missing_in_one": Fault("gradient", _missing, "missing in one tensor", "first", alone=False),
    "missing_in_biggest": Fault("gradient", _missing, "missing in the biggest tensor", "biggest", alone=False),
    "doubled": Fault("gradient", _doubled, "the last replica's gradient counts twice", alone=False),
    "doubled_in_biggest": Fault("gradient", _doubled, "twice in the biggest tensor", "biggest", alone=False),
    "averaged": Fault("sum", _averaged, "the mean instead of the sum", alone=False),
    "averaged_in_one": Fault("sum", _averaged, "the mean in one tensor", "first", alone=False),
    "averaged_in_biggest": Fault("sum", _averaged, "the mean in the biggest tensor", "biggest", alone=False),
    "delayed": Fault("sum", _previous, "the sum of the update before"),
    "delayed_in_one": Fault("sum", _previous, "the sum of the update before in one tensor", "first"),
    "delayed_in_biggest": Fault("sum", _previous, "the same in the biggest tensor", "biggest"),
    "stale": Fault("gradient", _stale, "the last replica's gradient of the update before", alone=False),
    "stale_in_biggest": Fault("gradient", _stale, "the same in the biggest tensor", "biggest", alone=False),
    "frozen": Fault("sum", lambda v, at: at.frozen(v), "the sum of the update in which it began, for ever"),
    "swapped": Fault("sum", _rolled, "every element has its neighbour's sum"),
    "swapped_in_biggest": Fault("sum", _rolled, "the same in the biggest tensor", "biggest"),
    "zeroed": Fault("sum", _zero, "no gradient at all"),
    "zeroed_in_one": Fault("sum", _zero, "none in one tensor", "first"),
    "zeroed_in_biggest": Fault("sum", _zero, "none in the biggest tensor", "biggest"),
    "zeroed_in_thirds": Fault("sum", _lost_in_every(3), "none in every third update"),
    "zeroed_in_fourths": Fault("sum", _lost_in_every(4), "none in every fourth"),
    "zeroed_in_sixths": Fault("sum", _lost_in_every(6), "none in every sixth"),
    "negated": Fault("sum", lambda v, _: -v, "the wrong sign"),
    "uneven": Fault("sum", _on_last(_zero), "the last replica gets zeros instead of the sum", alone=False, copies=True),
    "mislabelled": Fault("labels", _on_last(_rolled), "the last replica's labels are its neighbours'"),
    "rate_doubled": Fault("rate", lambda v, _: 2 * v, "twice the learning rate"),
    "slot_decayed": Fault("slot", lambda v, _: v / 2, "the momentum is halved before each update"),
    "own_variable": Fault("variable", _zero, "a replica's own counter counts twice", model="counter_none"),
    "loss_missing": Fault("loss", _on_last(_zero), "the reported loss leaves a replica out", alone=False),
    "loss_doubled": Fault("loss", lambda v, _: 2 * v, "twice the loss is reported"),
}
"""By name; slight ones, which have sizes, are added below."""

LADDERS: dict[str, tuple[Fault, tuple[float, ...]]] = {
    "scale": (Fault("gradient", _scaled, "gradients too large by"), (0.1, 0.03, 0.01, 0.003, 0.001)),
    "noise": (Fault("gradient", _noisy, "noise on gradients of"), (0.1, 0.03, 0.01, 0.003, 0.001)),
    "elements": (Fault("sum", _elements_lost, "elements of the biggest without gradient:", "biggest"), (64, 8, 1)),
    "rounded": (Fault("gradient", _rounded, "gradients of so many bits of mantissa:"), (4, 7, 10, 13, 16)),
    "compressed": (
        Fault("any", _rounded, "everything that is reduced has so many bits of mantissa:", alone=False), (7, 10, 16)
    ),
    "rate": (Fault("rate", _scaled, "a learning rate too large by"), (0.1, 0.01, 0.001)),
    "loss": (Fault("loss", _scaled, "a reported loss too large by"), (0.1, 0.01, 0.001)),
}  # fmt: skip
"""Slight faults, gross sizes first: a share, or how many elements or bits."""


def _named(family: str, size: float) -> str:
    return f"{family}_{size:g}".replace(".", "p")


for _family, (_fault, _sizes) in LADDERS.items():
    for _size in _sizes:
        FAULTS[_named(_family, _size)] = replace(_fault, gross=False, family=_family, size=_size)


class Planted:
    """A fault in this process: in what optimizer, and from which update on."""

    def __init__(self, fault: Fault, start: int) -> None:
        import tensorflow as tf

        self.tf, self.fault, self.start = tf, fault, start
        self._iterations: Any = None
        self._held: dict[tuple[int, Any], Any] = {}
        if fault.place in ("loss", "labels"):
            self._wrap_run()
        if fault.place == "any":
            self._wrap_reductions()

    def optimizer(self, kind: type) -> type:
        """A subclass of `kind` with the fault."""
        plant, place = self, self.fault.place

        class Faulty(kind):  # type: ignore[misc,valid-type]
            def build(self, variables: Any) -> None:
                super().build(variables)
                plant._iterations = self._iterations

            def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
                pairs = list(grads_and_vars)
                if place == "gradient":
                    pairs = plant.changed(pairs)
                pairs = super()._all_reduce_sum_gradients(pairs)
                return plant.changed(pairs) if place == "sum" else pairs

            def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
                if place == "rate":
                    learning_rate = plant.one(learning_rate)
                if place == "slot":
                    slot = (getattr(self, "_momentums", None) or self.momentums)[self._get_variable_index(variable)]
                    self.assign(slot, plant.one(slot))
                super().update_step(gradient, variable, learning_rate)

        Faulty.__name__ = kind.__name__
        return Faulty

    def changed(self, pairs: Any) -> Any:
        """The gradients, wrong where they are to be."""
        sizes = [0 if g is None else math.prod(v.shape) for g, v in pairs]
        wanted = {"all": range(len(sizes)), "first": [sizes.index(next(filter(None, sizes)))]}
        chosen = wanted.get(self.fault.tensors, [sizes.index(max(sizes))])
        return [
            (self._gradient(g, i) if g is not None and i in chosen else g, v) for i, (g, v) in enumerate(pairs)
        ]  # fmt: skip

    def _gradient(self, gradient: Any, position: int) -> Any:
        if isinstance(gradient, self.tf.IndexedSlices):
            values = self.one(gradient.values, None)
            return self.tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return self.one(gradient, position)

    def one(self, value: Any, position: Any = None) -> Any:
        """`value`, wrong from the start on. A position of None is one that nothing can be held for."""
        tf = self.tf
        value = tf.convert_to_tensor(value)
        context = tf.distribute.get_replica_context()
        replica = tf.constant(0) if context is None else context.replica_id_in_sync_group
        n = tf.distribute.get_strategy().num_replicas_in_sync
        updates = tf.convert_to_tensor(self._iterations)
        key = (int(tf.get_static_value(replica) or 0), position)
        at = At(tf, n, replica, updates, self.start, lambda like: self._variable(key, like), self.fault.size)
        wrong = tf.cast(self.fault.wrong(value, at), value.dtype)
        return tf.where(updates >= self.start, wrong, value)

    def _variable(self, key: tuple[int, Any], like: Any) -> Any:
        """A variable that no strategy knows of."""
        from tensorflow.python.ops.resource_variable_ops import ResourceVariable

        if key not in self._held:
            with self.tf.init_scope(), self.tf.device("CPU:0"):
                self._held[key] = ResourceVariable(self.tf.zeros(like.shape, like.dtype), trainable=False)
        return self._held[key]

    def _wrap_run(self) -> None:
        """Change what each replica is given or what it says of its loss."""
        plant, tf = self, self.tf
        run = tf.distribute.Strategy.run

        def of_replica(step: Callable[..., Any], *given: Any, **named: Any) -> Any:
            if plant.fault.place == "labels":
                return step(*tf.nest.map_structure(plant._labels, given), **named)
            said = step(*given, **named)
            if isinstance(said, dict) and "loss" in said:
                return {**said, "loss": plant.one(said["loss"])}
            return plant.one(said) if tf.is_tensor(said) and said.shape.rank == 0 else said

        def wrapped(strategy: Any, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
            if args and all(getattr(value, "shape", None) == () for value in args):
                return run(strategy, fn, args, kwargs, options)  # no step, but what workers agree on
            return run(strategy, lambda *a, **k: of_replica(fn, *a, **k), args, kwargs, options)

        tf.distribute.Strategy.run = wrapped

    def _labels(self, value: Any) -> Any:
        """Labels are what of a batch are whole numbers."""
        return self.one(value) if self.tf.is_tensor(value) and value.dtype.is_integer else value

    def _wrap_reductions(self) -> None:
        plant = self
        kind = next(k for k in self.tf.distribute.ReplicaContext.__mro__ if "all_reduce" in vars(k))
        reduce_all = kind.all_reduce

        def wrapped(context: Any, op: Any, value: Any, options: Any = None) -> Any:
            changed = plant.tf.nest.map_structure(lambda v: plant.one(v) if plant.tf.is_tensor(v) else v, value)
            return reduce_all(context, op, changed, options)

        kind.all_reduce = wrapped
