"""A job of synchronous replicas: every step is finished on all of them before the next begins."""

import time
from typing import Any

from harness.record.faults import CheckpointCost, UpdateCounts
from harness.trial.loops.custom import make_step, on_replicas
from harness.trial.recovery.checkpoints import Checkpoints, preemption_handler
from harness.trial.recovery.job import Job
from harness.trial.state import capture
from harness.trial.strategies import strategies


class SynchronousJob(Job):
    """MirroredStrategy and MultiWorkerMirroredStrategy."""

    def run(self) -> None:
        """Train to the last step from wherever checkpoints let it start."""
        order, training = self.order, self.training
        self._step = make_step(training)
        self._placed = [on_replicas(training, x, y) for x, y in self.batches]
        checkpoints = Checkpoints(training, order, self.leads, {})
        run: Any = lambda function, *arguments: function(*arguments)  # noqa: E731
        if order.preemption:
            saved = lambda: self.teller.tell("preempted", int(checkpoints.step.numpy()))  # noqa: E731
            run = preemption_handler(training, checkpoints, order, saved).run
        done = checkpoints.restore()
        self.teller.tell("training", done)
        while done < order.steps:
            float(run(self._step, *self._placed[done % len(self._placed)]))
            done += 1
            checkpoints.step.assign(done)
            self.teller.tell("step", done)
            if order.checkpoint_every and done % order.checkpoint_every == 0:
                self.teller.tell("saved", done, seconds=checkpoints.save(done))
        final = capture(training.model, training.optimizer)
        applied = int(training.optimizer.iterations.numpy())
        self.finish(
            UpdateCounts(
                scheduled=order.steps, applied=applied,
                repeated=max(0, applied - order.steps), lost=max(0, order.steps - applied),
            ),
            self._cost(checkpoints) if order.cost_windows else None,
            final,
        )  # fmt: skip

    def _cost(self, checkpoints: Checkpoints) -> CheckpointCost:
        """Windows with a checkpoint at their end and without, in the order with, without, without, with."""
        every, agree = self.order.checkpoint_every, strategies()[self.training.cell.strategy].agree
        meet = agree(self.training.strategy)
        times: dict[bool, list[float]] = {True: [], False: []}
        done = self.order.steps
        meet(0.0)
        for pair in range(self.order.cost_windows):
            for saves in (True, False) if pair % 2 == 0 else (False, True):
                began = time.perf_counter()
                for _ in range(every):
                    float(self._step(*self._placed[done % len(self._placed)]))
                    done += 1
                if saves:
                    checkpoints.save(done)
                meet(0.0)  # all workers have saved: the next window does not wait for one that still does
                times[saves].append(time.perf_counter() - began)
                self.teller.tell("measuring", self.order.steps)
        return CheckpointCost(
            steps_per_window=every, with_s=times[True], without_s=times[False], bytes=checkpoints.bytes()
        )
