"""Model.fit, since most users train that way; windows are cut by a callback."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.engines._keras.paced_fit import ENDLESS, paced_windows, traced_by_keras
from harness.engines.tensorflow.loops.base import Loop, LoopKind
from harness.engines.tensorflow.loops.custom import batches_of, on_replicas
from harness.engines.tensorflow.train_step import compile_as_asked, refuse_own_compile
from harness.errors import Unsupported
from harness.protocol.engine import Pace

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


class FitLoop(Loop):
    """One call of `Model.fit`, one epoch; what fit itself costs a step is part of its time.

    Under TensorFlow it reads each step's metrics before it begins the next, with callbacks or without (Keras'
    `IS_THREAD_SAFE`), so counting steps in a callback makes it wait for nothing that it would not wait for.
    """

    def __init__(self, training: "Training") -> None:
        super().__init__(training)
        if training.request.member is not None:
            raise Unsupported(
                "loop 'fit': Keras 3's Model.fit does not run in a cluster (MultiWorkerMirroredStrategy: ValueError: "
                "Attempt to convert a value (PerReplica…)); use --loop custom"
            )
        if training.cell.mesh:
            raise Unsupported("loop 'fit': Keras 3's Model.fit does not train on a DTensor mesh; use --loop custom")
        refuse_own_compile(training.model, "fit")
        with training.strategy.scope():
            compile_as_asked(training, training.model, training.optimizer)
        training.model.make_train_function()
        self._step: Callable[[Any], Any] = training.model.train_function
        """What Keras made to call for each step: (iterator) -> the step's metrics."""

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        import tensorflow as tf

        training, model = self._training, self._training.model
        if training.source.on_device:
            placed = batches_of(training)
            model.train_function = lambda _: self._step(placed)
            # fit cannot take batches that lie on the devices: it gets one for its shapes, and no step sees it
            offered: Any = tf.data.Dataset.from_tensors(training.batches[0]).repeat()
        else:
            offered = training.distributed(training.dataset())
        paced = paced_windows(pace)
        model.fit(offered, epochs=1, steps_per_epoch=ENDLESS, verbose=0, callbacks=[paced])
        if paced.left:  # fit warns, and returns as if all were done
            raise tf.errors.OutOfRangeError(None, None, "the input ended before the last window")

    def step_on(self, x: Any, y: Any) -> Any:
        """The function that fit calls for every step; the mean that Keras reports begins anew before it."""
        self._training.model.reset_metrics()
        placed = self._training.source.on_device
        return self._step(iter([on_replicas(self._training, x, y)]) if placed else self.late_in_turn())["loss"]

    def program(self) -> Any:
        """The concrete function that the steps ran."""
        traced = self._traced()
        return traced[-1] if traced else None

    def traces(self) -> int:
        """How often the step was traced."""
        return len(self._traced())

    def _traced(self) -> list[Any]:
        return traced_by_keras(self._step)


LOOP = LoopKind("fit", "Keras' Model.fit", FitLoop)
