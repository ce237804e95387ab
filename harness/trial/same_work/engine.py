"""What engines that do the same work are alike in: what is asked of an engine beside training."""

from collections.abc import Mapping
from typing import NoReturn

from harness.errors import Unsupported
from harness.protocol.channel import Channel
from harness.protocol.engine import Task
from harness.protocol.messages import Membership, Request


class AlikeProcesses:
    """Clusters (`harness.protocol.engine.Clusters`) in which no process is for the others alone."""

    title: str
    """The engine's name for people."""

    def serve(self, request: Request, member: Membership, channel: Channel) -> NoReturn:
        """No process only serves others here."""
        raise Unsupported(f"{member.name}: {self.title}'s processes are all alike, and none serves others")


class TrialsAlone:
    """An engine (`harness.protocol.engine.Engine`) that is asked for trials, whole, and for nothing else."""

    def on_host(self, request: Request) -> Request:
        """Nothing is left open."""
        return request

    def tasks(self) -> Mapping[str, Task]:
        """Nothing besides trials: no data set needs to be prepared."""
        return {}
