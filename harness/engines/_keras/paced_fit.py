"""Keras' Model.fit as a trial drives it: a callback cuts windows; and the program that it has traced."""

from collections.abc import Callable
from typing import Any

from harness.protocol.engine import GATE_UPDATES, Pace

ENDLESS = 1 << 40
"""Steps of the one epoch; the callback ends it."""


def paced_windows(pace: Pace, passed: Callable[[], None] = lambda: None) -> Any:
    """The callback; `left` steps are to come when fit is done with it. `passed` is called when the gate is."""
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
                if self.windows == GATE_UPDATES:
                    passed()
                self.left = pace.begin()
                if self.left == 0:
                    self.model.stop_training = True

    return PacedWindows()


def traced_by_keras(step: Callable[[Any], Any]) -> list[Any]:
    """What Keras' train function has traced: concrete functions, the last one last.

    Keras keeps two tf.functions in a closure, a step on what an iterator gives and, within it, one on a batch,
    wrapped; there is no public way to them. What ran is the outer one that was traced.
    """
    for cell in getattr(step, "__closure__", None) or ():
        for function in (cell.cell_contents, getattr(cell.cell_contents, "__wrapped__", None)):
            list_all = getattr(function, "_list_all_concrete_functions", None)
            if list_all is not None and (traced := list_all()):
                return list(traced)
    return []
