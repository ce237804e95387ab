"""What the gate sees of a user's own step, and what a fault in the step's gradients would do to that.

A step shows its losses, and of the Keras optimizers that it makes how large their state is: Adam's update hides the
size of a gradient, its moments do not. Faults are planted where every step of TensorFlow gets its gradients, in
`tf.GradientTape`.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from harness.engines.tensorflow.reference.update import times_gradient
from harness.engines.tensorflow.tapes import tapes_return
from harness.trial.judgement import STATE_TOLERANCE, share_of_limit

OF_SEVERAL = ("missing", "averaged")
"""Faults of `Checks.sight` that one replica cannot have."""


@dataclass(frozen=True)
class LossesAndState:
    """What the gate's steps of one process showed: each one's loss, and afterwards the norm of each optimizer's slots,
    in the order in which the optimizers were made."""

    losses: tuple[float, ...] = ()
    slots: tuple[float, ...] = ()

    def named(self) -> list[tuple[str, float]]:
        """Each number with what it is."""
        losses = [(f"loss {number}", loss) for number, loss in enumerate(self.losses, start=1)]
        return losses + [(f"the state of optimizer {number}", norm) for number, norm in enumerate(self.slots, start=1)]


class Optimizers:
    """The Keras optimizers that a process makes from now on, until their state is looked at."""

    def __init__(self) -> None:
        import keras

        self._kind, self._made = keras.optimizers.Optimizer, list[Any]()
        made = self._made

        def note(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            super(keras.optimizers.Optimizer, optimizer).__init__(*args, **kwargs)
            made.append(optimizer)

        self._before = self._kind.__dict__.get("__init__")
        self._kind.__init__ = note

    def slots(self) -> tuple[float, ...]:
        """The norm of each one's slots; none is noted any more."""
        if self._before is None:
            del self._kind.__init__
        else:
            self._kind.__init__ = self._before
        return tuple(_norm_of_slots(optimizer) for optimizer in self._made if not hasattr(optimizer, "inner_optimizer"))


def _norm_of_slots(optimizer: Any) -> float:
    import keras
    import numpy as np

    own = (optimizer.iterations, getattr(optimizer, "_learning_rate", None))
    slots = [variable for variable in optimizer.variables if not any(variable is other for other in own)]
    return math.hypot(*(float(np.linalg.norm(keras.ops.convert_to_numpy(slot).astype(np.float64))) for slot in slots))


@dataclass
class PlantedGradients:
    """While entered, what every `tf.GradientTape` returns has a `fault` in it; None leaves it as it is.

    Once it was left `replicas` says of how many replicas gradients were taken, 0 where none were.
    """

    fault: str | None = None
    replicas: int = 0
    _before: dict[Any, Any] = field(default_factory=dict)
    """The last gradients by replica and shapes."""

    def __enter__(self) -> "PlantedGradients":
        self._tapes = tapes_return(lambda asked, *args, **kwargs: self._wrong(asked(*args, **kwargs)))
        self._tapes.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._tapes.__exit__(None, None, None)

    def _wrong(self, gradients: Any) -> Any:
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        count = 1 if context is None else context.num_replicas_in_sync
        replica = 0 if context is None else int(context.replica_id_in_sync_group)
        self.replicas = max(self.replicas, count)
        if self.fault == "delayed":
            key = (replica, str(tf.nest.map_structure(lambda g: None if g is None else g.shape, gradients)))
            earlier, self._before[key] = self._before.get(key, gradients), gradients
            return earlier
        last = replica == count - 1
        factor = {"missing": 0.0 if last else 1.0, "averaged": 1 / count, "doubled": 2.0}.get(self.fault or "", 1.0)
        return gradients if factor == 1 else tf.nest.map_structure(lambda g: times_gradient(g, factor), gradients)


@dataclass(frozen=True)
class NumberApart:
    """A number that was shown, beside the one that is `wanted`; `share` is the difference ÷ what is allowed."""

    name: str
    value: float
    wanted: float
    allowed: float

    @property
    def share(self) -> float:
        """0 where both are the same."""
        error = abs(self.value - self.wanted)
        return share_of_limit(error, self.allowed) if error else 0.0


def furthest(got: LossesAndState, expected: LossesAndState, precision: str) -> NumberApart:
    """The number that is furthest from what is expected: a loss is allowed the tolerance of `precision` of the largest
    loss, a state of itself."""
    tolerance = STATE_TOLERANCE.get(precision, STATE_TOLERANCE["float32"])
    largest = max((abs(loss) for loss in expected.losses if math.isfinite(loss)), default=0.0)
    sizes = [largest] * len(expected.losses) + list(expected.slots)
    made = NumberApart("the number of optimizers", len(got.slots), len(expected.slots), 0.0)
    compared = [
        NumberApart(name, value, wanted, tolerance * size)
        for (name, value), (_, wanted), size in zip(got.named(), expected.named(), sizes, strict=False)
    ]
    return max([made, *compared], key=lambda number: number.share)
