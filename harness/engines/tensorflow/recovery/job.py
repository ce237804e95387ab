"""One process of a job: from its start to the last step, or to TensorFlow's error."""

import time
from pathlib import Path
from typing import Any

from harness.engines.tensorflow.data.cached_batches import cached_batches
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.training import Training
from harness.protocol.channel import Channel
from harness.protocol.messages import JobOrder, JobReport, Report
from harness.protocol.state import VariableState
from harness.record.faults import CheckpointCost, UpdateCounts
from harness.trial.job_state import write_state

BATCHES = 16
"""Distinct global batches. Step s trains on number s modulo this: the order of the data follows from the step alone,
so that a job that starts again at step s sees what it would have seen."""


class Teller:
    """Tells the parent how far the job is."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def tell(self, what: Any, step: int, **more: Any) -> None:
        """Send one JobReport, stamped now."""
        self._channel.send(Report(job=JobReport(what=what, step=step, at_s=time.monotonic(), **more)))


class Job:
    """What both kinds of job have: the training, its batches, what was asked, and who is told."""

    def __init__(self, training: Training, order: JobOrder, teller: Teller) -> None:
        self.training = training
        self.order = order
        self.teller = teller
        self.initial = capture(training.model, training.optimizer)
        self.batches = cached_batches(
            training.request,
            "job-batches",
            training.source,
            training.input_shape,
            training.classes,
            BATCHES,
            training.vocabulary,
        )
        """Distinct global batches, the same ones in every process and after every restart."""

    @property
    def leads(self) -> bool:
        """Whether this process writes what all of them would write alike."""
        member = self.training.request.member
        return member is None or member.leads

    def batch(self, step: int) -> Any:
        """The global batch of a step, from 0."""
        return self.batches[step % BATCHES]

    def finish(self, updates: UpdateCounts, cost: CheckpointCost | None, final: list[VariableState]) -> None:
        """Hand over the final state and what was counted."""
        if self.leads:
            write_state(Path(self.order.state), self.initial, final)
        self.teller.tell("done", self.order.steps, updates=updates, cost=cost)
