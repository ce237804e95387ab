"""A job with parameter servers: a coordinator schedules updates, and each is counted on the servers themselves."""

import concurrent.futures
import gc
import itertools
import time
from collections.abc import Callable
from typing import Any

from harness.engines.tensorflow.loops._coordinator import make_update
from harness.engines.tensorflow.recovery.batches import job_batches
from harness.engines.tensorflow.recovery.checkpoints import Checkpoints, preemption_handler
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.training import Training
from harness.record.faults import CheckpointCost, UpdateCounts
from harness.trial.job import Job, Teller

IN_FLIGHT_A_WORKER = 4
"""Updates that are scheduled ahead a worker: enough to keep it busy, few enough to know how far the job is."""


class ParameterServerJob(Job):
    """ParameterServerStrategy. The witnesses are part of the state: they are in checkpoints, too."""

    def __init__(self, training: Training, teller: Teller) -> None:
        super().__init__(training.request, teller, capture(training.model, training.optimizer))
        self.training = training
        self.batches = job_batches(training)

    def run(self) -> None:
        """Train to the last step from wherever checkpoints let it start."""
        import tensorflow as tf

        gc.enable()
        order, training = self.order, self.training
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(training.strategy)
        self._most = IN_FLIGHT_A_WORKER * training.cell.workers
        last = order.steps + 2 * order.cost_windows * order.checkpoint_every
        with training.strategy.scope():
            self._begun = tf.Variable(tf.zeros([last], tf.int32), trainable=False, name="begun")
            self._ended = tf.Variable(tf.zeros([last], tf.int32), trainable=False, name="ended")
        self._update = self._witnessed(last)
        self._constants = [tf.nest.map_structure(tf.constant, batch) for batch in self.batches]
        checkpoints = Checkpoints(training, order, True, {"begun": self._begun, "ended": self._ended})
        if order.preemption:
            preemption_handler(training, checkpoints, order, lambda: None)
        done = checkpoints.restore()
        self.teller.tell("training", done)
        with concurrent.futures.ThreadPoolExecutor(self._most) as waiting:
            self._pool = waiting
            while done < order.steps:
                until = min(order.steps, self._next_stop(done))
                self._do(done, until, lambda step: self.teller.tell("step", step))
                done = until
                if order.checkpoint_every and done % order.checkpoint_every == 0:
                    began = time.perf_counter()
                    checkpoints.save(done)
                    self.teller.tell("saved", done, seconds=time.perf_counter() - began)
            counts, final = self._counts(), capture(training.model, training.optimizer)
            self.finish(counts, self._cost(checkpoints) if order.cost_windows else None, final)

    def _next_stop(self, done: int) -> int:
        every = self.order.checkpoint_every
        return self.order.steps if not every else (done // every + 1) * every

    def _do(self, first: int, until: int, told: Callable[[int], None]) -> None:
        """Do steps `first` to `until`, a few in flight at a time; `told` hears how many are done after each."""
        steps = iter(range(first, until))
        flying = {self._fly(step) for step in itertools.islice(steps, self._most)}
        done = first
        while flying:
            landed, flying = concurrent.futures.wait(flying, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in landed:
                one.result()
                done += 1
                told(done)
            flying |= {self._fly(step) for step in itertools.islice(steps, len(landed))}

    def _fly(self, step: int) -> "concurrent.futures.Future[Any]":
        import tensorflow as tf

        x, y = self._constants[step % len(self._constants)]
        scheduled = self._coordinator.schedule(self._update, args=(tf.constant(step), x, y))
        return self._pool.submit(scheduled.fetch)

    def _witnessed(self, last: int) -> Any:
        """The update between two additions of one to its own element: begun before the first weight changes,
        ended after the last has. Each addition is one locked operation, so no count is lost."""
        import tensorflow as tf

        update, begun, ended = make_update(self.training), self._begun, self._ended

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def witnessed(step: Any, x: Any, y: Any) -> Any:
            mark = tf.one_hot(step, last, dtype=tf.int32)
            with tf.control_dependencies([begun.assign_add(mark, use_locking=True, read_value=False)]):
                loss, _ = update(x, y)
            with tf.control_dependencies([loss]):
                written = ended.assign_add(mark, use_locking=True, read_value=False)
            with tf.control_dependencies([written]):
                return tf.identity(loss)

        return witnessed

    def _counts(self) -> UpdateCounts:
        steps = self.order.steps
        begun, ended = self._begun.numpy()[:steps], self._ended.numpy()[:steps]
        most, least = begun.clip(min=ended), begun.clip(max=ended)
        return UpdateCounts(
            scheduled=steps,
            applied=max(0, int(self.training.optimizer.iterations.numpy())),
            once=int(((begun == 1) & (ended == 1)).sum()),
            repeated=int((most.clip(min=1) - 1).sum()),
            lost=int((least == 0).sum()),
            torn=int((begun != ended).sum()),
        )

    def _cost(self, checkpoints: Checkpoints) -> CheckpointCost:
        """Windows with a checkpoint at their end and without; both wait for every update at their end."""
        every, done = self.order.checkpoint_every, self.order.steps
        times: dict[bool, list[float]] = {True: [], False: []}
        for pair in range(self.order.cost_windows):
            for saves in (True, False) if pair % 2 == 0 else (False, True):
                began = time.perf_counter()
                self._do(done, done + every, lambda _: None)
                done += every
                if saves:
                    checkpoints.save(done)
                times[saves].append(time.perf_counter() - began)
                self.teller.tell("measuring", self.order.steps)
        return CheckpointCost(
            steps_per_window=every, with_s=times[True], without_s=times[False], bytes=checkpoints.bytes()
        )
