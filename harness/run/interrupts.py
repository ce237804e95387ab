"""Ctrl-C: the first asks the sweep to end and keep what it has; a second ends it at once."""

import signal
import threading
from types import FrameType

from harness.errors import Interrupted


class Interrupts:
    """While entered, SIGINT and SIGTERM set a flag that waiting code looks at."""

    def __init__(self) -> None:
        self.asked = False
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interrupts":
        # signals are the main thread's: in another one, as of a server that calls the API, nobody presses Ctrl-C
        here = threading.current_thread() is threading.main_thread()
        for number in (signal.SIGINT, signal.SIGTERM) if here else ():
            self._previous[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def check(self) -> None:
        """Raise Interrupted if the person asked to stop."""
        if self.asked:
            raise Interrupted("interrupted")

    def _ask(self, _: int, __: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
