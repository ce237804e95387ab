"""A trial that could not be started: it stands for processes that there are not."""

import socket

from harness.protocol.channel import Channel
from harness.protocol.hosting import EXIT_LIMIT_S, STDERR_CHARACTERS
from harness.protocol.messages import Outcome, Report
from harness.record.cluster import ClusterRecord
from harness.run.launchers import CannotPlace


class RefusedChild:
    """Its one report says why it could not be started; see `harness.protocol.hosting.Child`."""

    host: str | None = None
    pids: tuple[int, ...] = ()
    status = 0
    lost = out_of_memory = False
    who = gone = ""

    def __init__(self, error: CannotPlace) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        with theirs:
            outcome = Outcome(status="unsupported", reason=str(error), may_pass=error.may_pass)
            Channel(theirs).send(Report(outcome=outcome))

    def stderr_tail(self, characters: int = STDERR_CHARACTERS) -> str:
        """Nothing was started, so nothing was written."""
        return ""

    def awaited(self) -> str:
        """Nothing is to come."""
        return ""

    def cluster(self) -> ClusterRecord | None:
        """There are no processes."""
        return None

    def signal(self, number: int) -> None:
        """Nobody is there to get it."""

    def kill(self) -> None:
        """Nobody is there to be ended."""

    def wait(self, limit_s: float = EXIT_LIMIT_S) -> int:
        """It has ended."""
        return 0

    def release(self) -> None:
        """Close the channel."""
        self.channel.close()
