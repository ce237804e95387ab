"""Checkpoints every N steps, as Keras' BackupAndRestore makes them: the newest one is what a restart goes on from.

Keras 3's own callback saves a model's weights from `Model.fit`, which does not run in a cluster; these are
`tf.train.Checkpoint`s of weights, optimizer state, step and whatever else the job counts.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.engines.tensorflow.server_state import ShardedVariable
from harness.engines.tensorflow.training import Training
from harness.protocol.messages import JobOrder
from harness.trial.job import PREEMPTED_STATUS

KEPT = 2
"""Checkpoints that stay: a process may be killed while it writes the newer one."""


class Checkpoints:
    """The checkpoints of one process. Every worker must save; what is not the lead's is thrown away."""

    def __init__(self, training: Training, order: JobOrder, leads: bool, beside: Mapping[str, Any]) -> None:
        import tensorflow as tf

        self._order = order
        self._leads = leads
        self._folder = Path(order.folder) / "periodic"
        self._own = self._folder if leads else Path(order.folder) / f"worker-{training.worker}"
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.all = tf.train.Checkpoint(step=self.step, **_variables(training), **beside)
        self._manager = tf.train.CheckpointManager(
            self.all, str(self._own), max_to_keep=KEPT, checkpoint_name="step", step_counter=self.step
        )

    def restore(self) -> int:
        """Go back to the newest checkpoint there is; the steps done by then, 0 without one."""
        import tensorflow as tf

        newest = tf.train.latest_checkpoint(str(self._folder))
        if newest is not None and int(newest.rpartition("-")[2]) > int(self.step.numpy()):
            self.all.restore(newest).assert_existing_objects_matched()
        return int(self.step.numpy())

    def save(self, step: int) -> None:
        """Save, under the step's number."""
        self.step.assign(step)
        self._manager.save(checkpoint_number=step)
        if not self._leads:
            shutil.rmtree(self._own, ignore_errors=True)

    def bytes(self) -> int:
        """Size of the newest one."""
        newest = self._manager.latest_checkpoint
        if newest is None:
            return 0
        place = Path(newest)
        return sum(path.stat().st_size for path in place.parent.glob(f"{place.name}.*"))


def preemption_handler(training: Training, checkpoints: Checkpoints, order: JobOrder, on_saved: Any) -> Any:
    """TensorFlow's PreemptionCheckpointHandler, which goes back to its own checkpoint at once if there is one.

    NotImplementedError where TensorFlow's handler does not take the strategy.
    """
    import tensorflow as tf

    # It asks a metadata server whether this is a Google machine and waits 5 s where a network swallows the question.
    os.environ.setdefault("GCE_METADATA_IP", "127.0.0.1:9")

    def leave() -> None:
        on_saved()
        os._exit(PREEMPTED_STATUS)

    resolver = None
    if training.request.member is not None:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.experimental.PreemptionCheckpointHandler(
        resolver,
        checkpoints.all,
        str(Path(order.folder) / "preempted"),
        tf.distribute.experimental.TerminationConfig(exit_fn=leave, grace_period=0),
    )


def _variables(training: Training) -> dict[str, Any]:
    """Every variable of model and optimizer, under a name that is the same in every process."""
    found: dict[str, Any] = {}
    for number, variable in enumerate([*training.model.variables, *training.optimizer.variables]):
        parts = variable.shards if isinstance(variable, ShardedVariable) else (getattr(variable, "value", variable),)
        found |= {f"variable_{number}_{part}": value for part, value in enumerate(parts)}
    return found
