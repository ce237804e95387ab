"""Training state on parameter servers: weights, untrained state and optimizer state, updated by locked kernels.

Keras 3's optimizers read a variable, compute, and assign: two workers at the same time overwrite each other's
update (of 220 updates 163 were left). TensorFlow's fused kernels (`ResourceApplyAdam` and its like) change the
variable where it lies, under its lock, so that no update is lost. The model itself is called without state of
its own (`stateless_call`), so a large variable may lie in shards on several servers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import Unsupported

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class ShardedVariable:
    """One variable on servers or a mesh, with what `harness.engines.tensorflow.state` wants to know of it."""

    path: str
    shards: tuple[Any, ...]
    """The tf.Variables that it lies in, cut along its first axis; one where it is whole."""

    def read(self) -> Any:
        """The whole value as a tensor."""
        import tensorflow as tf

        parts = [tf.convert_to_tensor(shard) for shard in self.shards]
        return parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)

    def numpy(self) -> Any:
        """The whole value on the host."""
        return self.read().numpy()

    def copies(self) -> list[Any]:
        """What is to be the same, each with a `numpy()`."""
        return [self]

    def cut(self, whole: Any) -> list[Any]:
        """A tensor of its shape, cut as it is."""
        import tensorflow as tf

        if len(self.shards) == 1:
            return [whole]
        return list(tf.split(whole, [int(shard.shape[0]) for shard in self.shards]))


Placing = Callable[[Any, "ShardedVariable | None"], ShardedVariable]
"""Places a Keras variable: by itself, or as the one given lies, which a kernel will update together with it."""


class StatelessModel:
    """A Keras model that is called without state of its own, and its variables where `place` puts them."""

    def __init__(self, place: Placing, model: Any) -> None:
        self.template = model
        at_place = {id(v): place(v, None) for v in model.variables}
        self.variables = [at_place[id(v)] for v in model.variables]
        self.trainable_variables = [at_place[id(v)] for v in model.trainable_variables]
        self.non_trainable_variables = [at_place[id(v)] for v in model.non_trainable_variables]

    def read(self) -> tuple[list[Any], list[Any]]:
        """(trained, untrained) values, for one step."""
        return [v.read() for v in self.trainable_variables], [v.read() for v in self.non_trainable_variables]

    def call(self, trained: list[Any], untrained: list[Any], x: Any) -> tuple[Any, list[Any], list[Any]]:
        """(outputs, untrained state afterwards, regularisation losses) of a training call."""
        outputs, after, losses = self.template.stateless_call(trained, untrained, x, training=True, return_losses=True)
        return outputs, list(after), list(losses)

    def keep_untrained(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Write what the call changed beside the weights; of two workers at once the later one's is kept."""
        for variable, old, new in zip(self.non_trainable_variables, before, after, strict=True):
            if new is not old:
                for shard, part in zip(variable.shards, variable.cut(new), strict=True):
                    shard.assign(part)


class FusedOptimizer:
    """TensorFlow's fused kernel of Adam or gradient descent, with the configuration of a Keras optimizer."""

    def __init__(self, place: Placing, optimizer: Any, model: StatelessModel) -> None:
        _must_have_a_kernel(optimizer)
        self.configured = optimizer
        """The Keras optimizer, whose own variables nobody updates."""
        beside = _weights_of_slots(optimizer, model)
        self.variables = [place(v, beside.get(id(v))) for v in optimizer.variables]
        by_id = {id(v): sharded for v, sharded in zip(optimizer.variables, self.variables, strict=True)}
        self.iterations = by_id[id(optimizer.iterations)].shards[0]
        self._rate = by_id[id(optimizer._learning_rate)].shards[0]
        self._weights = model.trainable_variables
        self._apply = _rule(optimizer, by_id)

    def apply(self, gradients: Sequence[Any]) -> None:
        """One update of every weight and slot, each under its lock, and then of the step counter.

        TensorFlow orders by itself only what touches the same variable: the counter would count updates that begin.
        """
        import tensorflow as tf

        count, rate, written = self.iterations.read_value() + 1, self._rate.read_value(), []
        for position, (weight, gradient) in enumerate(zip(self._weights, gradients, strict=True)):
            if gradient is None:
                continue
            parts = weight.cut(tf.convert_to_tensor(gradient))
            for number, (shard, part) in enumerate(zip(weight.shards, parts, strict=True)):
                of_type = [tf.cast(value, shard.dtype) for value in (rate, count)]  # a kernel takes one for all
                written.append(self._apply(position, number, shard, part, *of_type))
        with tf.control_dependencies(written):
            self.iterations.assign_add(1, use_locking=True)


def on_servers(strategy: "tf.distribute.Strategy", variable: Any, beside: ShardedVariable | None) -> ShardedVariable:
    """`variable` on the servers, as the strategy spreads it, or cut and placed as `beside` is: a kernel that
    updates both must find them on one server."""
    import tensorflow as tf

    value, name = tf.constant(variable.numpy()), variable.path.replace("/", "_")
    with strategy.scope():
        if beside is None:
            made = tf.Variable(value, trainable=False, name=name)
            return ShardedVariable(variable.path, tuple(getattr(made, "variables", None) or [made]))
        shards = []
        for shard, part in zip(beside.shards, beside.cut(value), strict=True):
            with strategy.extended.colocate_vars_with(shard):
                shards.append(tf.Variable(part, trainable=False, name=name))
        return ShardedVariable(variable.path, tuple(shards))


def _weights_of_slots(optimizer: Any, model: StatelessModel) -> dict[int, ShardedVariable]:
    """The weight that each slot belongs to, by the slot's id."""
    slots = [getattr(optimizer, name, None) or [] for name in ("_momentums", "_velocities", "momentums")]
    return {id(slot): weight for kind in slots for slot, weight in zip(kind, model.trainable_variables, strict=False)}


def _rule(optimizer: Any, by_id: dict[int, ShardedVariable]) -> Any:
    """The kernel for `optimizer`: (weight's position, shard's number, shard, gradient, rate, count) -> its op."""
    import keras

    return (_adam if type(optimizer) is keras.optimizers.Adam else _sgd)(optimizer, by_id)


_WITHOUT = (
    "clipnorm", "clipvalue", "global_clipnorm", "use_ema", "weight_decay", "amsgrad", "gradient_accumulation_steps"
)  # fmt: skip
"""Of a Keras optimizer, what the kernels do not have."""


def _must_have_a_kernel(optimizer: Any) -> None:
    """Raises Unsupported for an optimizer that TensorFlow has no locked kernel for with the same arithmetic."""
    import keras

    schedule = callable(optimizer._learning_rate)
    kernel = type(optimizer) in (keras.optimizers.Adam, keras.optimizers.SGD)
    if kernel and not schedule and not any(getattr(optimizer, name, None) for name in _WITHOUT):
        return
    raise Unsupported(
        f"optimizer: there is no locked kernel for {type(optimizer).__name__} as it is configured, only for Adam and "
        "SGD without clipping, decay, schedules, accumulation and averages; parameter_server with --updates keras runs "
        "it, and shows what it loses"
    )


def _adam(optimizer: Any, by_id: dict[int, ShardedVariable]) -> Any:
    import tensorflow as tf

    moments = [by_id[id(v)] for v in optimizer._momentums]
    velocities = [by_id[id(v)] for v in optimizer._velocities]
    beta1, beta2, epsilon = (float(v) for v in (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon))

    def power(beta: float, count: Any) -> Any:
        return tf.pow(tf.cast(tf.constant(beta, tf.float32), count.dtype), count)  # so rounded by Keras in float64, too

    def apply(position: int, number: int, shard: Any, gradient: Any, rate: Any, count: Any) -> Any:
        return tf.raw_ops.ResourceApplyAdam(
            var=shard.handle,
            m=moments[position].shards[number].handle,
            v=velocities[position].shards[number].handle,
            beta1_power=power(beta1, count),
            beta2_power=power(beta2, count),
            lr=rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            grad=gradient,
            use_locking=True,
        )

    return apply


def _sgd(optimizer: Any, by_id: dict[int, ShardedVariable]) -> Any:
    import tensorflow as tf

    moments = [by_id[id(v)] for v in getattr(optimizer, "momentums", None) or []]
    momentum = float(optimizer.momentum)

    def apply(position: int, number: int, shard: Any, gradient: Any, rate: Any, _: Any) -> Any:
        if not momentum:
            descend = tf.raw_ops.ResourceApplyGradientDescent
            return descend(var=shard.handle, alpha=rate, delta=gradient, use_locking=True)
        return tf.raw_ops.ResourceApplyKerasMomentum(
            var=shard.handle,
            accum=moments[position].shards[number].handle,
            lr=rate,
            grad=gradient,
            momentum=momentum,
            use_locking=True,
            use_nesterov=bool(optimizer.nesterov),
        )

    return apply
