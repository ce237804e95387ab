"""One process of a job that is to survive faults, whatever engine trains: so many steps, from wherever its checkpoints
let it start."""

import gc
import time
from collections.abc import Callable
from pathlib import Path

from harness.protocol.channel import Channel
from harness.protocol.engine import Clusters, Ending, Recoverable
from harness.protocol.messages import JobOrder, JobReport, JobWord, Outcome, Report, Request
from harness.protocol.state import VariableState
from harness.record.faults import CheckpointCost, UpdateCounts
from harness.trial.ending import ending_of
from harness.trial.job_state import write_state

BATCHES = 16
"""Distinct global batches. Step s trains on number s modulo this: the order of the data follows from the step alone,
so that a job that starts again at step s sees what it would have seen."""
PREEMPTED_STATUS = 42
"""What a process ends with that has saved since it was told to end: as TensorFlow's handler has it, outside of Google's
own machines."""


def run_job(
    request: Request,
    channel: Channel,
    clusters: Clusters | None,
    classify: Callable[[Exception], Ending],
    train: Callable[[Request, "Teller"], None],
) -> Outcome:
    """Take the process's place and `train`, or serve; what the framework raises becomes the outcome, for the parent to
    act on."""
    member = request.member
    try:
        if member is not None and clusters is not None:
            clusters.join(member)
            if member.serves:
                return clusters.serve(request, member, channel)
        channel.send(Report(phase="build"))
        train(request, Teller(channel))
        return Outcome(status="ok")
    except Exception as error:  # noqa: BLE001  whatever is raised ends this process's part, with its reason
        return Outcome(**ending_of(error, classify)._asdict())


class Teller:
    """Tells the parent how far the job is."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def tell(
        self,
        what: JobWord,
        step: int,
        seconds: float = 0.0,
        updates: UpdateCounts | None = None,
        cost: CheckpointCost | None = None,
    ) -> None:
        """Send one JobReport, stamped now."""
        now = time.monotonic()
        self._channel.send(
            Report(job=JobReport(what=what, step=step, at_s=now, seconds=seconds, updates=updates, cost=cost))
        )


class Job:
    """What every job has: what was asked, who is told, and whether it writes what all processes would write alike."""

    def __init__(self, request: Request, teller: Teller, initial: list[VariableState]) -> None:
        assert request.job is not None
        self.order: JobOrder = request.job
        self.teller = teller
        self.leads = request.member is None or request.member.leads
        self._initial = initial

    def finish(self, updates: UpdateCounts, cost: CheckpointCost | None, final: list[VariableState]) -> None:
        """Hand over the final state and what was counted."""
        if self.leads:
            write_state(Path(self.order.state), self._initial, final)
        self.teller.tell("done", self.order.steps, updates=updates, cost=cost)


class SynchronousJob(Job):
    """Every step is finished on all replicas before the next begins: in one process, or processes in lock-step."""

    def __init__(self, request: Request, teller: Teller, training: Recoverable) -> None:
        super().__init__(request, teller, training.state())
        self._training = training

    def run(self) -> None:
        """Train to the last step from wherever checkpoints let it start."""
        order, training, tell = self.order, self._training, self.teller.tell
        gc.enable()
        if order.preemption:
            training.listen(lambda step: tell("preempted", step))
        done = training.restore()
        tell("training", done)
        while done < order.steps:
            training.step(done)
            done += 1
            tell("step", done)
            if order.checkpoint_every and done % order.checkpoint_every == 0:
                began = time.perf_counter()
                training.save(done)
                tell("saved", done, seconds=time.perf_counter() - began)
        final, applied = training.state(), training.updates()
        lost, repeated = max(0, order.steps - applied), max(0, applied - order.steps)
        counted = UpdateCounts(scheduled=order.steps, applied=applied, repeated=repeated, lost=lost)
        self.finish(counted, self._cost() if order.cost_windows else None, final)

    def _cost(self) -> CheckpointCost:
        """Windows with a checkpoint at their end and without, in the order with, without, without, with."""
        every, done, training = self.order.checkpoint_every, self.order.steps, self._training
        times: dict[bool, list[float]] = {True: [], False: []}
        training.agree(0.0)
        for pair in range(self.order.cost_windows):
            for saves in (True, False) if pair % 2 == 0 else (False, True):
                began = time.perf_counter()
                for step in range(done, done + every):
                    training.step(step)
                done += every
                if saves:
                    training.save(done)
                training.agree(0.0)  # all processes have saved: the next window does not wait for one that still does
                times[saves].append(time.perf_counter() - began)
                self.teller.tell("measuring", self.order.steps)
        return CheckpointCost(
            steps_per_window=every, with_s=times[True], without_s=times[False], bytes=training.checkpoint_bytes()
        )
