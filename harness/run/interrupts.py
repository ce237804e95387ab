"""Ctrl-C: the first asks the sweep to end and keep what it has; a second ends it at once."""

import signal
import threading
import time
from collections.abc import Collection
from types import FrameType
from typing import ClassVar

from harness.errors import Interrupted

SAME_S = 0.25
"""Signals so soon after the first are the same request. `timeout` sends its one to the process and to its group, and
people who hold a key down do not mean to lose what the first press is to keep."""


NOHUP = (signal.SIGHUP,)
"""Signals that are not heeded where whoever started the process has them ignored, as `nohup` does."""


def end_signals(left_if_ignored: Collection[int] = NOHUP) -> list[int]:
    """The signals that ask this process to end."""
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [n for n in asked if n not in left_if_ignored or signal.getsignal(n) != signal.SIG_IGN]


class Interrupts:
    """While entered, SIGINT, SIGTERM and SIGHUP set a flag that waiting code looks at."""

    left_if_ignored: ClassVar[tuple[int, ...]] = NOHUP

    def __init__(self) -> None:
        self.asked = False
        self._asked_at = 0.0
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interrupts":
        # signals are the main thread's: in another one, as of a server that calls the API, nobody presses Ctrl-C
        here = threading.current_thread() is threading.main_thread()
        for number in end_signals(self.left_if_ignored) if here else ():
            self._previous[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            outer = getattr(handler, "__self__", None)
            if self.asked and isinstance(outer, Interrupts):
                outer.asked, outer._asked_at = True, self._asked_at  # the same request may still arrive once more
            signal.signal(number, handler)  # type: ignore[arg-type]

    def check(self) -> None:
        """Raise Interrupted if the person asked to stop."""
        if self.asked:
            raise Interrupted("interrupted")

    def _ask(self, number: int, _: FrameType | None) -> None:
        if not self.asked:
            self.asked, self._asked_at = True, time.monotonic()
        elif number != signal.SIGHUP and time.monotonic() - self._asked_at > SAME_S:
            raise KeyboardInterrupt  # of a lost terminal shell and kernel tell one after the other: nobody insists


class Raised(Interrupts):
    """While entered, the first signal raises KeyboardInterrupt: for what waits for nothing and looks at no flag."""

    left_if_ignored = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        first = not self.asked
        super()._ask(number, frame)
        if first:
            raise KeyboardInterrupt
