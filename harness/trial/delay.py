"""Planted time: something after the last step of a window that takes a share of what its steps took."""

import time
from collections.abc import Callable

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
