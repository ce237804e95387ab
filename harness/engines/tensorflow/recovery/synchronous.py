"""Synchronous replicas under TensorFlow, as a job has them: in one process, or workers in lock-step."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.loops._mesh import LossOnMesh
from harness.engines.tensorflow.loops._mesh import make_step as make_mesh_step
from harness.engines.tensorflow.loops.custom import LossInShares, make_step, on_replicas
from harness.engines.tensorflow.mesh import DeviceMesh
from harness.engines.tensorflow.recovery.batches import job_batches
from harness.engines.tensorflow.recovery.checkpoints import Checkpoints, preemption_handler
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.strategies import strategies
from harness.protocol.messages import JobOrder
from harness.protocol.state import VariableState

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


class SynchronousTraining:
    """Every strategy but ParameterServerStrategy; see `harness.protocol.engine.Recoverable`."""

    def __init__(self, training: "Training", order: JobOrder) -> None:
        self._training, self._order = training, order
        member = training.request.member
        self._step, place = _step_of(training)
        self._on_devices = [place(x, y) for x, y in job_batches(training)]
        self._checkpoints = Checkpoints(training, order, member is None or member.leads, {})
        self._run: Any = lambda function, *arguments: function(*arguments)
        self.agree = strategies()[training.cell.strategy].agree(training.strategy)

    def state(self) -> list[VariableState]:
        """Of model and optimizer."""
        return capture(self._training.model, self._training.optimizer)

    def updates(self) -> int:
        """As Keras' optimizer counts them."""
        return int(self._training.optimizer.iterations.numpy())

    def step(self, number: int) -> None:
        """One update, under TensorFlow's handler where that listens."""
        float(self._run(self._step, *self._on_devices[number % len(self._on_devices)]))
        self._checkpoints.step.assign(number + 1)

    def restore(self) -> int:
        """From the newest periodic checkpoint, or the handler's where that is newer."""
        return self._checkpoints.restore()

    def save(self, step: int) -> None:
        """Every worker saves, as TensorFlow wants it; what is not the lead's is thrown away."""
        self._checkpoints.save(step)

    def checkpoint_bytes(self) -> int:
        """Of the newest periodic one."""
        return self._checkpoints.bytes()

    def listen(self, saved: Callable[[int], None]) -> None:
        """By TensorFlow's PreemptionCheckpointHandler."""
        told = lambda: saved(int(self._checkpoints.step.numpy()))  # noqa: E731
        self._run = preemption_handler(self._training, self._checkpoints, self._order, told).run


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
