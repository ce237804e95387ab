"""That what takes long goes on: the parent takes a process for hung from which nothing comes."""

import math
import time
from collections.abc import Callable

from harness.protocol.channel import Channel
from harness.protocol.messages import Report

EVERY_S = 1.0


class SignOfLife:
    """Told to the parent of the one trial that a process is, or to who has it prepare files; to nobody where there is
    none."""

    def __init__(self) -> None:
        self._tell: Callable[[int], None] | None = None
        self._told = 0.0

    def tell_over(self, channel: Channel) -> None:
        """From now on the parent is told over `channel`."""
        self.tell_by(lambda _: channel.send(Report(alive=True)))

    def tell_by(self, tell: Callable[[int], None]) -> None:
        """From now on `tell` is called, with how many pieces are done."""
        self._tell, self._told = tell, -math.inf

    def __call__(self, done: int = 0) -> None:
        """Between two pieces of something long, however short they are, of which so many are done, if anybody counts
        them: it is told now and then."""
        now = time.monotonic()
        if self._tell is not None and now - self._told > EVERY_S:
            self._told = now
            self._tell(done)


sign_of_life = SignOfLife()
