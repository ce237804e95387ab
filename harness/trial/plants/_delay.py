"""Something before a step that takes a share of what steps take."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from harness.trial.plants.base import Batch, Planted


class Delay(Planted):
    """Spends time at each step: `share` of the time that the steps before it took, the delay itself not counted.

    `spend` takes about as many seconds as it is called with. What it takes too long or too little is carried over to
    the next step, so the mean is exact whatever the system's timer or the call itself take. So nothing that is done
    once may come in a call: what tracing took was owed by hundreds of steps, and live trials lost 1.5 points less
    than was stated. Time between windows, when others have the turn, is not the steps' time.

    On processors every step is delayed. Accelerators work behind the host's back: a delay between two steps
    would hide behind work that is still queued. There (`every_step` False) a window's delay comes before its
    first step, when the devices are idle.
    """

    def __init__(
        self,
        share: float,
        spend: Callable[[float], None],
        every_step: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._share = share
        self._spend = spend
        self._every_step = every_step
        self._clock = clock
        self._since: float | None = None
        """When the time that has not been accounted for began; None between windows."""
        self._owed = 0.0
        """Seconds to spend still; negative when the last time was too long."""
        self._first = True

    def batches(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches, each as late as is owed."""
        while True:
            self._account()
            if self._first or self._every_step:
                self._pay()
            self._first = False
            try:
                batch = next(batches)
            except StopIteration:
                return
            yield batch

    def window_begins(self) -> None:
        """The wait for this window was not the steps'."""
        self._since = self._clock()
        self._first = True

    def window_ends(self, loss: Any) -> None:
        """Wait for the last step where it may still be under way, and stop counting."""
        if not self._every_step:
            float(loss)
        self._account()
        self._since = None

    def _account(self) -> None:
        """Owe the share of the time since the last delay."""
        if self._since is not None:
            now = self._clock()
            self._owed += self._share * (now - self._since)
            self._since = now

    def _pay(self) -> None:
        if self._owed <= 0:
            return
        start = self._clock()
        self._spend(self._owed)
        end = self._clock()
        self._owed -= end - start
        if self._since is not None:
            self._since = end
