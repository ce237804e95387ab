"""More work on every device in every step."""

from collections.abc import Sequence
from typing import Any

from harness.trial.plants._work import replica_at_hand
from harness.trial.plants._working import Working
from harness.trial.plants.base import PlantKind


class DeviceWork(Working):
    """Before its forward pass every replica multiplies matrices whose product nobody needs.

    Where it is timed, all do so until the same moment: TensorFlow may run the replicas' parts of a step one after the
    other on the same thread, and what each took for itself would add up (seen: twice the time at two replicas).
    """

    def __init__(self, share: float, devices: Sequence[str]) -> None:
        super().__init__(PLANT.name, share, devices)
        self._began: Any = None

    def step_begins(self) -> None:
        """Look at the clock."""
        import tensorflow as tf

        self._began = tf.timestamp() if self.timed else None

    def before_forward(self, x: Any) -> Any:
        """The batch, after the work: nothing of the step can run beside it."""
        return self.work[replica_at_hand(len(self.work))].then(x, after=[x], since=self._began)


PLANT = PlantKind("device_work", "more work on every device in every step", DeviceWork)
