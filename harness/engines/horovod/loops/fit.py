"""`DistributedOptimizer` under Keras' Model.fit, as Horovod's Keras examples do."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from harness.engines._keras.paced_fit import ENDLESS, paced_windows, traced_by_keras
from harness.engines.horovod.loops.base import HorovodLoopKind, Made, Trained
from harness.engines.horovod.loops.optimizer import WrappedOptimizer
from harness.protocol.engine import Pace
from harness.trial.same_work.instruments import GoesOn


class Fit(WrappedOptimizer):
    """One call of `Model.fit`, one epoch, on batches that lie ready."""

    goes_on: GoesOn | None = None
    """What is done instead of the step once the gate is passed, and with which batches, given those of the step."""

    def __init__(self, trained: Trained) -> None:
        super().__init__(trained)
        # jit_compile is pinned: Keras' "auto" would compile, and Horovod has no op for XLA here
        trained.model.compile(self.optimizer, trained.loss, jit_compile=False, steps_per_execution=1)

    def run(self, batches: Iterator[tuple[Any, Any]], pace: Pace) -> None:
        """Train until `pace` says 0."""
        import tensorflow as tf

        model, called, first = self._trained.model, self._called, next(batches)
        waiting = _put_back(first, batches)
        model.train_function = lambda _: called(waiting)

        def go_on() -> None:
            if self.goes_on is not None:
                step, rest = self.goes_on(waiting)
                model.train_function = lambda _: {"loss": step(*next(rest))}

        # fit takes no batches that lie ready: it gets one for its shapes, and no step sees it
        model.fit(
            tf.data.Dataset.from_tensors(first).repeat(),
            epochs=1,
            steps_per_epoch=ENDLESS,
            verbose=0,
            callbacks=[paced_windows(pace, go_on)],
        )

    def step(self, x: Any, y: Any) -> Any:
        """By the function that fit calls for every step; the mean that Keras reports begins anew before it."""
        self._trained.model.reset_metrics()
        return self._called(iter([(x, y)]))["loss"]

    def one_step(self, x: Any, y: Any) -> Any:
        """Keras' own, which counts what it reports, too."""
        return self._trained.model.train_step((x, y))["loss"]

    def gradients(self, x: Any, y: Any, taped: Callable[[Any], Any]) -> list[Any]:
        """What Keras' own step gives the optimizer; it asks TensorFlow's tape."""
        optimizer, found = self.optimizer, list[Any]()
        apply, optimizer.apply_gradients = optimizer.apply_gradients, lambda pairs: found.extend(g for g, _ in pairs)
        try:
            self.one_step(x, y)
        finally:
            optimizer.apply_gradients = apply
        return found

    def made(self, function: Callable[[Any, Any], Any]) -> Made:
        """As Keras makes it of a step. There is no public way to one that is not the model's."""
        made = self._trained.model._make_function(lambda data: {"loss": function(*data)})
        return Made(lambda x, y: made(iter([(x, y)]))["loss"], lambda: traced_by_keras(made)[-1])

    def program(self) -> Any:
        """The concrete function that the steps ran."""
        return traced_by_keras(self._called)[-1]

    @functools.cached_property
    def _called(self) -> Callable[[Any], Any]:
        """What Keras made to call for each step: (iterator) -> the step's metrics."""
        self._trained.model.make_train_function()
        found: Callable[[Any], Any] = self._trained.model.train_function
        return found


def _put_back(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


LOOP = HorovodLoopKind("fit", "Keras' Model.fit with hvd.DistributedOptimizer", Fit)
