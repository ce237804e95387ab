"""That what takes long goes on: the parent takes a process for hung from which nothing comes."""

import time

from harness.protocol.channel import Channel
from harness.protocol.messages import Report

EVERY_S = 1.0


class SignOfLife:
    """Told to the parent of the one trial that a process is; to nobody where there is none."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._told = 0.0

    def tell_over(self, channel: Channel) -> None:
        """From now on the parent is told over `channel`."""
        self._channel = channel

    def __call__(self) -> None:
        """Between two pieces of something long, however short they are: it is told now and then."""
        now = time.monotonic()
        if self._channel is not None and now - self._told > EVERY_S:
            self._told = now
            self._channel.send(Report(alive=True))


sign_of_life = SignOfLife()
