"""What a loop must be able to do: steps of this process on its share of a batch, gradients averaged over all."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Made(NamedTuple):
    """A function (x, y) -> a number as a loop calls it, and the concrete function of it once it ran."""

    called: Callable[..., Any]
    program: Callable[[], Any]

    @classmethod
    def by_tracing(cls, function: Any) -> "Made":
        """Of what `traced` gives."""
        return cls(function, lambda: program_of(function))


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
        return program_of(self._step)

    def alone(self, x: Any, y: Any) -> None:
        """Forward and backward of this process, to its end; nothing is averaged or updated."""
        self._pass(x, y)

    def loss_of(self, x: Any, y: Any) -> Any:
        """The mean loss over this process's share, traced."""
        return self._trained.loss(y, self._trained.model(x, training=True))

    def passed(self, x: Any, y: Any, taped: Callable[[Any], Any]) -> tuple[Any, list[Any]]:
        """(the loss, the gradients), traced: as the tape gives them that `taped` makes of TensorFlow's."""
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = self.loss_of(x, y)
        return loss, taped(tape).gradient(loss, self.sources)

    @property
    def sources(self) -> list[Any]:
        """What gradients are of, TensorFlow's variables: Horovod's tape knows none of Keras 3."""
        return [variable.value for variable in self._trained.model.trainable_variables]

    def apply(self, gradients: Sequence[Any]) -> None:
        """One update, traced."""
        self.optimizer.apply_gradients(zip(gradients, self._trained.model.trainable_variables, strict=True))

    def one_step(self, x: Any, y: Any) -> Any:
        """One update and its loss, traced."""
        loss, gradients = self.passed(x, y, self.taped)
        self.apply(gradients)
        return loss

    def gradients(self, x: Any, y: Any, taped: Callable[[Any], Any]) -> list[Any]:
        """Those of `one_step`, traced, by the tape that `taped` makes; nothing is changed by them."""
        return self.passed(x, y, taped)[1]

    def made(self, function: Callable[[Any, Any], Any]) -> Made:
        """`function`, which is to be traced, as the loop calls its step; each time another one."""
        return Made.by_tracing(traced(function))

    @functools.cached_property
    def _step(self) -> Any:
        return self.made(self.one_step).called

    @functools.cached_property
    def _pass(self) -> Any:
        return traced(lambda x, y: self.passed(x, y, lambda tape: tape)[1])


def traced(function: Callable[..., Any]) -> Any:
    """`function` as TensorFlow traces and runs it."""
    import tensorflow as tf

    return tf.function(function, autograph=False)


def program_of(function: Any) -> Any:
    """The concrete function of a traced one, once it ran."""
    return function._list_all_concrete_functions()[-1]


@dataclass(frozen=True)
class HorovodLoopKind:
    """A registered loop."""

    name: str
    summary: str
    build: Callable[[Trained], HorovodLoop]
