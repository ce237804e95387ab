"""What the kinds of slow-down that are made of work share: how much of it a step gets."""

import collections
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.trial.devices.base import Unsupported
from harness.trial.plants._calibration import calibrated_rate, too_small
from harness.trial.plants._counted import CountedWork
from harness.trial.plants._timed import TimedWork
from harness.trial.plants.base import Batch, Keep, Planted, on_processors

FIRST_STEPS = 12
"""Steps without work whose second half says how much the first window gets."""
REMEMBERED = 30
"""Windows whose mean step time the share is taken of: few enough to follow a machine whose speed drifts."""
EVERY = 10
"""Windows between two looks at it: setting a variable takes some 50 µs of the window's time."""


class Working(Planted):
    """Work that takes `share` of the step's own time.

    On processors it lasts that long by the clock, and follows the step's time as the machine's speed drifts.
    Elsewhere it is a number of products, found out beforehand (`calibrated_rate`).
    """

    def __init__(
        self, kind: str, share: float, devices: Sequence[str], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._kind, self._share, self._clock = kind, share, clock
        self.timed = [TimedWork(device) for device in devices] if on_processors(devices) else []
        self.counted = [] if self.timed else [CountedWork(device) for device in devices]
        self._seconds = self._fixed_s = self._since = 0.0
        self._steps = self._windows = 0
        self._plain_s: collections.deque[float] = collections.deque(maxlen=REMEMBERED)

    @property
    def work(self) -> Sequence[TimedWork] | Sequence[CountedWork]:
        """What the devices do, one each."""
        return self.timed or self.counted

    def batches(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches, counted."""
        for batch in batches:
            self._steps += 1
            yield batch

    def window_begins(self) -> None:
        """The window's time begins."""
        self._since, self._steps = self._clock(), 0

    def window_ends(self, loss: Any) -> None:
        """On processors a step has been done when its call returns: learn what the window's steps took."""
        if not self.timed or not self._steps:
            return
        self._plain_s.append((self._clock() - self._since) / self._steps - self._seconds - self._fixed_s)
        self._windows += 1
        if self._seconds and self._windows % EVERY == 0:
            self._set_share_of(statistics.fmean(self._plain_s))

    def calibrate(self, step: Callable[[], object], keep: Keep) -> None:
        """Set how much work the first window gets; its own ops, which are there without any work, count as work."""
        if not self.timed:
            rate = calibrated_rate(self._kind, self._share, self.counted, step, keep)
            for counted in self.counted:
                counted.set_rate(rate)
            return
        import numpy as np

        alone = keep(f"plant-{self._kind}", lambda: {"fixed": np.array(self.timed[0].cost_s())})["fixed"]
        self._fixed_s = len(self.timed) * float(alone)  # the devices' ops may run one after the other on one thread
        for work in self.timed:
            work.set_seconds(0.0)
        taken = [self._time(step) for _ in range(FIRST_STEPS)]
        plain_s = statistics.median(taken[FIRST_STEPS // 2 :]) - self._fixed_s
        if self._share * plain_s <= self._fixed_s:
            raise Unsupported(too_small(self._kind, self._share, plain_s, self._fixed_s))
        self._plain_s.clear()
        self._set_share_of(plain_s)

    def _time(self, step: Callable[[], object]) -> float:
        start = self._clock()
        step()
        return self._clock() - start

    def _set_share_of(self, plain_s: float) -> None:
        self._seconds = max(0.0, self._share * plain_s - self._fixed_s)
        for work in self.timed:
            work.set_seconds(self._seconds)
