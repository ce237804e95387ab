"""What a loop must be able to do: steps of this process on its share of a batch, gradients averaged over all."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.protocol.engine import Pace


@dataclass(frozen=True)
class Trained:
    """What is trained: a Keras model, its optimizer, neither built nor wrapped, and the loss (y, outputs) -> its mean.

    `compression` is an attribute of `hvd.Compression`.
    """

    model: Any
    optimizer: Any
    loss: Any
    compression: str

    def how(self) -> dict[str, Any]:
        """Arguments for Horovod's wrappers."""
        import horovod.tensorflow as hvd

        return {"compression": getattr(hvd.Compression, self.compression)}


class HorovodLoop:
    """A way to train; this one averages nothing, which is right where there is one process."""

    def __init__(self, trained: Trained) -> None:
        self._trained = trained
        self.optimizer = self.wrapped(trained.optimizer)
        """As the step uses it."""
        self.optimizer.build(trained.model.trainable_variables)

    def wrapped(self, optimizer: Any) -> Any:
        """The optimizer as it is used."""
        return optimizer

    def taped(self, tape: Any) -> Any:
        """The tape that is asked for the gradients."""
        return tape

    def step(self, x: Any, y: Any) -> Any:
        """One update on this process's share (x [b, ...], y [b]) of a batch; the mean loss over the share."""
        return self._step(x, y)

    def run(self, batches: Iterator[tuple[Any, Any]], pace: Pace) -> None:
        """Train until `pace` says 0."""
        while steps := pace.begin():
            for _ in range(steps):
                loss = self.step(*next(batches))
            pace.end(loss)

    def program(self) -> Any:
        """The concrete function of the step, once it ran."""
        return self._step._list_all_concrete_functions()[-1]

    def alone(self, x: Any, y: Any) -> None:
        """Forward and backward of this process, to its end; nothing is averaged or updated."""
        self._pass(x, y)

    @functools.cached_property
    def _step(self) -> Any:
        """Gradients of TensorFlow's variables: Horovod's tape knows none of Keras 3."""
        import tensorflow as tf

        model = self._trained.model

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self._trained.loss(y, model(x, training=True))
            gradients = self.taped(tape).gradient(loss, [v.value for v in model.trainable_variables])
            self.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        return step

    @functools.cached_property
    def _pass(self) -> Any:
        import tensorflow as tf

        model = self._trained.model

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def passed(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self._trained.loss(y, model(x, training=True))
            return tape.gradient(loss, model.trainable_variables)

        return passed


@dataclass(frozen=True)
class HorovodLoopKind:
    """A registered loop."""

    name: str
    summary: str
    build: Callable[[Trained], HorovodLoop]
