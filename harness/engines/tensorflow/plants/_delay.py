"""Planted time in a loop of TensorFlow's."""

import time
from collections.abc import Callable

from harness.engines.tensorflow.plants.base import Planted
from harness.trial.delay import Delay


class PlantedDelay(Delay, Planted):
    """Makes each window longer; in the traced step it does nothing."""

    def __init__(self, share: float, spend: Callable[[float], None], *, of_input: bool = False) -> None:
        super().__init__(share, spend)
        self.of_input = of_input


class StepDelay(Planted):
    """As many seconds for each step, however long it takes, at the end of the window, as `Delay` spends them."""

    def __init__(self, each_s: float, spend: Callable[[float], None], *, of_input: bool = False) -> None:
        self.of_input = of_input
        self._each_s, self._spend = each_s, spend
        self._owed = 0.0
        """Seconds to spend still; negative when the last time was too long."""

    def before_step(self) -> None:
        """A step more."""
        self._owed += self._each_s

    def window_ends(self, finish: Callable[[], object]) -> None:
        """Wait for the steps, then spend what is owed for them."""
        finish()
        self._spend_what_is_owed()

    def _spend_what_is_owed(self) -> None:
        if self._owed > 0:
            begun = time.perf_counter()
            self._spend(self._owed)
            self._owed -= time.perf_counter() - begun
