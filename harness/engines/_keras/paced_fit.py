"""Keras' Model.fit as a trial drives it: a callback cuts windows; and the program that it has traced."""

from collections.abc import Callable
from typing import Any

from harness.errors import UsageError
from harness.protocol.engine import GATE_UPDATES, Pace

_LOSS = "loss"
"""What Keras calls the loss among what a train_step returns."""
ENDLESS = 1 << 40
"""Steps of the one epoch; the callback ends it."""


def paced_windows(pace: Pace, passed: Callable[[], None] = lambda: None, a_call: int = 1) -> Any:
    """The callback; `left` steps are to come when fit is done with it. `passed` is called when the gate is, after which
    a call of the train function makes `a_call` steps."""
    import keras

    class PacedWindows(keras.callbacks.Callback):  # type: ignore[misc]
        """Counts steps; between windows it blocks until the next turn."""

        def on_train_begin(self, logs: Any = None) -> None:
            self.left = pace.begin()
            self.windows = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.left -= min(self.left, a_call)  # those of the gate are one by one
            if self.left == 0:
                pace.end(loss_in(logs, self.model.name))
                self.windows += 1
                if self.windows < GATE_UPDATES:
                    self.model.reset_metrics()  # Keras reports the mean since the epoch began
                if self.windows == GATE_UPDATES:
                    passed()
                self.left = pace.begin()
                if self.left == 0:
                    self.model.stop_training = True

    return PacedWindows()


def loss_in(returned: Any, name: str) -> Any:
    """The loss among what a train_step of the model of that name returned; UsageError where there is none."""
    if not isinstance(returned, dict) or _LOSS not in returned:
        raise UsageError(f"model: '{name}': its train_step returns no '{_LOSS}', expected a dict with one")
    return returned[_LOSS]


def traced_by_keras(step: Callable[[Any], Any]) -> list[Any]:
    """What Keras' train function has traced: concrete functions, the last one last. What ran is the outer one of the
    two (`functions_of_keras`) that was traced."""
    found = (function._list_all_concrete_functions() for function in functions_of_keras(step))
    return list(next(filter(None, found), []))


def functions_of_keras(step: Callable[[Any], Any]) -> list[Any]:
    """The two tf.functions that Keras' train function keeps in a closure: the steps on what an iterator gives, and
    within it, wrapped, one step on a batch. There is no public way to them."""
    kept = [cell.cell_contents for cell in getattr(step, "__closure__", None) or ()]
    both = [function for one in kept for function in (one, getattr(one, "__wrapped__", None))]
    return [function for function in both if hasattr(function, "_list_all_concrete_functions")]
