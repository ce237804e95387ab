"""What engines that do the same work are alike in: what is asked of an engine beside training."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NoReturn

from harness.errors import Unsupported
from harness.protocol.channel import Channel
from harness.protocol.engine import Clusters, Ending, Recoverable, Task, Trainer
from harness.protocol.messages import Membership, Outcome, Request
from harness.spec.collective import COLLECTIVE
from harness.trial.collectives import CollectiveTrial, Sending
from harness.trial.job import SynchronousJob, Teller, run_job


class AlikeProcesses:
    """Clusters (`harness.protocol.engine.Clusters`) in which no process is for the others alone."""

    title: str
    """The engine's name for people."""

    def serve(self, request: Request, member: Membership, channel: Channel) -> NoReturn:
        """No process only serves others here."""
        raise Unsupported(f"{member.name}: {self.title}'s processes are all alike, and none serves others")


class TrialsAlone(ABC):
    """An engine (`harness.protocol.engine.Engine`) that is asked for trials, whole, and for nothing else."""

    title: str
    clusters: Clusters | None

    def on_host(self, request: Request) -> Request:
        """Nothing is left open."""
        return request

    def tasks(self) -> Mapping[str, Task]:
        """Nothing besides trials, of trainings and of collectives, and jobs: no data set needs to be prepared."""
        return {COLLECTIVE: self._collective, "job": self._job}

    def sending(self, request: Request) -> Sending:
        """A collective by itself, built; Unsupported, with the reason, where it cannot be."""
        raise Unsupported(f"{self.title} has no collectives that are measured by themselves here")

    def _job(self, request: Request, channel: Channel) -> Outcome:
        return run_job(request, channel, self.clusters, self.classify, self._train)

    def _train(self, request: Request, teller: Teller) -> None:
        training = self.trainer(request)
        if not isinstance(training, Recoverable):
            raise Unsupported(f"{self.title}'s trainings are not taken up again here")
        SynchronousJob(request, teller, training).run()

    def _collective(self, request: Request, channel: Channel) -> Outcome:
        return CollectiveTrial(request, channel, self.classify, self.sending).run()

    @abstractmethod
    def trainer(self, request: Request) -> Trainer:
        """See `Engine.trainer`."""

    @abstractmethod
    def classify(self, error: Exception) -> Ending:
        """See `Engine.classify`."""
