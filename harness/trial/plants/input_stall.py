"""An input that makes every step wait for it, and burns no processor time."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.trial.plants.base import Batch, Planted, PlantKind, on_processors


class InputStall(Planted):
    """Sleeps before a step for `share` of the time that the steps before it took, the sleep itself not counted.

    What is slept too long or too little is carried over to the next step, so the mean is exact whatever
    the system's timer does. Time between windows, when others have the turn, is not the steps' time.

    On processors every step stalls. Accelerators work behind the host's back: a stall between two steps
    would hide behind work that is still queued. There (`every_step` False) a window's stall comes before its
    first step, when the devices are idle.
    """

    def __init__(
        self,
        share: float,
        every_step: bool,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._share = share
        self._every_step = every_step
        self._clock = clock
        self._sleep = sleep
        self._since: float | None = None
        """When the time that has not been accounted for began; None between windows."""
        self._owed = 0.0
        """Seconds to sleep still; negative when the last sleep was too long."""
        self._first = True

    def batches(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches, each as late as is owed."""
        while True:
            self._account()
            if self._first or self._every_step:
                self._stall()
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
        """Owe the share of the time since the last stall."""
        if self._since is not None:
            now = self._clock()
            self._owed += self._share * (now - self._since)
            self._since = now

    def _stall(self) -> None:
        if self._owed <= 0:
            return
        start = self._clock()
        self._sleep(self._owed)
        end = self._clock()
        self._owed -= end - start
        if self._since is not None:
            self._since = end


def _build(share: float, devices: Sequence[str]) -> Planted:
    return InputStall(share, every_step=on_processors(devices))


PLANT = PlantKind("input_stall", "the input makes each step wait and burns no processor time", _build)
