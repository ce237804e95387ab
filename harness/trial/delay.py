"""Planted time: something after the last step of a window that takes a share of what its steps took, or so long for
each step, and workers that sleep before their steps."""

import time
from collections.abc import Callable

from harness.errors import Unsupported
from harness.record.trial import Plant

PLACEBO = 0.2
"""Share of a window that work takes on both sides, so that both call it in every window: a call takes 1.0 to 1.4 ms,
and what it does by itself is to be no difference. A window of a validation is 20 ms or more."""


def above_placebo(share: float) -> float:
    """The share of a bare window that makes it longer by `share` than the placebo's."""
    return PLACEBO + share * (1 + PLACEBO)


class Delay:
    """Makes each window longer by `share` of its steps' time, at its end, when the devices have done them all.

    `spend` takes about as many seconds as it is called with. What it takes too long or too little is carried over to
    the next window, so the mean is exact whatever the system's timer or the call itself take. So nothing that is done
    once may come in a call: what tracing took was owed by hundreds of steps, and live trials lost 1.5 points less
    than was stated. Time between windows, when others have the turn, is not the steps' time.

    Not between two steps: whatever a pause is spent with, the step after it is slower itself, and the more so the
    longer the pause is. Ten per cent before every step came to 9 to 13 % of a bare loop, and 40 % to 42 to 48 %
    (`results/validation/README.md`). After the last step comes nothing that could be slower, but another trial's turn.
    Nor would a pause between steps delay accelerators, which work behind the host's back.
    """

    def __init__(
        self,
        share: float,
        spend: Callable[[float], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._share = share
        self._spend = spend
        self._clock = clock
        self._begun = 0.0
        self._owed = 0.0
        """Seconds to spend still; negative when the last time was too long."""

    def window_begins(self) -> None:
        """The wait for this window was not the steps'."""
        self._begun = self._clock()

    def window_ends(self, finish: Callable[[], object]) -> None:
        """Wait for the steps, then spend what is owed for them."""
        finish()
        done = self._clock()
        self._owed += self._share * (done - self._begun)
        if self._owed > 0:
            self._spend(self._owed)
            self._owed -= self._clock() - done


class StepDelay:
    """As many seconds for each step, however long it takes, at the end of the window, as `Delay` spends them."""

    def __init__(self, each_s: float, spend: Callable[[float], None]) -> None:
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


SLOW_WORKER, WORKER_DELAY = "slow_worker", "worker_delay"
"""Kinds of plants: before each step another worker sleeps, and the others wait for it; or all sleep alike."""


class WorkerDelay(StepDelay):
    """`plant.each` seconds a step of each worker, in the mean over a window.

    What the two kinds differ in is waiting alone: a worker sleeps as long in both. One that is always slow would be
    slow where no other waits for it, too, and an arm of `explain` takes as long as its slowest worker.

    A window's time is its slowest worker's, so in each window all sleep as often, where `window_begins` is called: in
    the first steps of one that has not a whole number of turns they sleep alike. How many steps a window has, the one
    before it tells.
    """

    worker, workers = 0, 1
    """Which of how many in lock-step it is."""

    def __init__(self, plant: Plant) -> None:
        if plant.each is None:
            raise Unsupported(f"plant: '{plant.kind}' is seconds of each step, and no share of it")
        super().__init__(plant.each, time.sleep)
        self._in_turn = plant.kind == SLOW_WORKER
        self._step = self._first_in_turn = 0
        """Steps of this window so far; those in which all sleep alike."""

    def window_begins(self) -> None:
        """It has as many steps as the one before."""
        self._first_in_turn, self._step = self._step % self.workers, 0

    def before_step(self) -> None:
        """Sleep, if it is this worker's turn: all workers count the same steps."""
        turn = self._step - self._first_in_turn
        if not self._in_turn or turn < 0:
            self._sleep(self._each_s)
        elif turn % self.workers == self.worker:
            self._sleep(self.workers * self._each_s)
        self._step += 1

    def _sleep(self, seconds: float) -> None:
        self._owed += seconds
        self._spend_what_is_owed()
