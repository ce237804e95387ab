"""Model.fit, since most users train that way; windows are cut by a callback."""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.loops.base import Loop, LoopKind
from harness.errors import Unsupported
from harness.protocol.engine import GATE_UPDATES, Pace

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training

ENDLESS = 1 << 40
"""Steps of the one epoch; the callback ends it."""


class FitLoop(Loop):
    """One call of `Model.fit`, one epoch; what fit itself costs a step is part of its time."""

    def __init__(self, training: "Training") -> None:
        super().__init__(training)
        if training.request.member is not None:
            raise Unsupported(
                "loop 'fit': Keras 3's Model.fit does not run in a cluster (MultiWorkerMirroredStrategy: ValueError: "
                "Attempt to convert a value (PerReplica…)); use --loop custom"
            )
        if training.cell.mesh:
            raise Unsupported("loop 'fit': Keras 3's Model.fit does not train on a DTensor mesh; use --loop custom")
        with training.strategy.scope():
            # jit_compile is pinned: Keras' "auto" would compile the base case and not the rest.
            training.model.compile(
                optimizer=training.optimizer, loss=training.loss, jit_compile=training.cell.xla, steps_per_execution=1
            )

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        batches = self._training.distributed(self._training.dataset())
        self._training.model.fit(
            batches, epochs=1, steps_per_epoch=ENDLESS, verbose=0, callbacks=[_callback(pace)]
        )

    def step_on(self, x: Any, y: Any) -> Any:
        """The function that fit calls for every step; the mean that Keras reports begins anew before it."""
        self._training.model.reset_metrics()
        return self._training.model.train_function(self.repeated(x, y))["loss"]

    def program(self) -> Any:
        """The concrete function that the steps ran."""
        traced = self._traced()
        return traced[-1] if traced else None

    def traces(self) -> int:
        """How often the step was traced."""
        return len(self._traced())

    def _traced(self) -> list[Any]:
        """Keras keeps its tf.function in a closure; there is no public way to it."""
        function = self._training.model.train_function
        cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        for content in cells:
            if hasattr(content, "_list_all_concrete_functions"):
                return list(content._list_all_concrete_functions())
        return []


def _callback(pace: Pace) -> Any:
    import keras

    class PacedWindows(keras.callbacks.Callback):  # type: ignore[misc]
        """Counts steps; between windows it blocks until the next turn."""

        def on_train_begin(self, logs: Any = None) -> None:
            self.left = pace.begin()
            self.windows = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.left -= 1
            if self.left == 0:
                pace.end(logs["loss"])
                self.windows += 1
                if self.windows < GATE_UPDATES:
                    self.model.reset_metrics()  # Keras reports the mean since the epoch began
                self.left = pace.begin()
                if self.left == 0:
                    self.model.stop_training = True

    return PacedWindows()


LOOP = LoopKind("fit", "Keras' Model.fit", FitLoop)
