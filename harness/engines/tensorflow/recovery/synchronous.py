"""A job of synchronous replicas: every step is finished on all of them before the next begins."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.loops._mesh import LossOnMesh
from harness.engines.tensorflow.loops._mesh import make_step as make_mesh_step
from harness.engines.tensorflow.loops.custom import LossInShares, make_step, on_replicas
from harness.engines.tensorflow.mesh import DeviceMesh
from harness.engines.tensorflow.recovery.checkpoints import Checkpoints, preemption_handler
from harness.engines.tensorflow.recovery.job import Job
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.strategies import strategies
from harness.record.faults import CheckpointCost, UpdateCounts

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


class SynchronousJob(Job):
    """Every strategy but ParameterServerStrategy: in one process, or workers in lock-step."""

    def run(self) -> None:
        """Train to the last step from wherever checkpoints let it start."""
        order, training = self.order, self.training
        self._step, place = _step_of(training)
        self._on_devices = [place(x, y) for x, y in self.batches]
        checkpoints = Checkpoints(training, order, self.leads, {})
        run: Any = lambda function, *arguments: function(*arguments)  # noqa: E731
        if order.preemption:
            saved = lambda: self.teller.tell("preempted", int(checkpoints.step.numpy()))  # noqa: E731
            run = preemption_handler(training, checkpoints, order, saved).run
        done = checkpoints.restore()
        self.teller.tell("training", done)
        while done < order.steps:
            float(run(self._step, *self._on_devices[done % len(self._on_devices)]))
            done += 1
            checkpoints.step.assign(done)
            self.teller.tell("step", done)
            if order.checkpoint_every and done % order.checkpoint_every == 0:
                self.teller.tell("saved", done, seconds=checkpoints.save(done))
        final = capture(training.model, training.optimizer)
        applied = int(training.optimizer.iterations.numpy())
        self.finish(
            UpdateCounts(
                scheduled=order.steps,
                applied=applied,
                repeated=max(0, applied - order.steps),
                lost=max(0, order.steps - applied),
            ),
            self._cost(checkpoints) if order.cost_windows else None,
            final,
        )

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
                    float(self._step(*self._on_devices[done % len(self._on_devices)]))
                    done += 1
                if saves:
                    checkpoints.save(done)
                meet(0.0)  # all workers have saved: the next window does not wait for one that still does
                times[saves].append(time.perf_counter() - began)
                self.teller.tell("measuring", self.order.steps)
        return CheckpointCost(
            steps_per_window=every, with_s=times[True], without_s=times[False], bytes=checkpoints.bytes()
        )


def _step_of(training: "Training") -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], tuple[Any, Any]]]:
    """The training step, (x, y) -> what `float` takes once this process's replicas have done it, and what places a
    global batch for it."""
    import tensorflow as tf

    if not isinstance(on := training.strategy, DeviceMesh):
        step = make_step(training)
        return lambda x, y: LossInShares(training, step(x, y)).own(), lambda x, y: on_replicas(training, x, y)
    mesh_step = make_mesh_step(training)
    placed: Callable[[Any, Any], tuple[Any, Any]] = lambda x, y: tf.nest.map_structure(on.batch, (x, y))  # noqa: E731
    return lambda x, y: LossOnMesh(on, mesh_step(x, y)), placed
