"""One slow replica: the others wait for it."""

from collections.abc import Sequence
from typing import Any

from harness.trial.devices.base import Unsupported
from harness.trial.plants._work import replica_at_hand
from harness.trial.plants._working import Working
from harness.trial.plants.base import PlantKind


class SlowReplica(Working):
    """Replica 0 alone does more work, once it has updated its weights, before its step is done.

    The replicas have just met in the all-reduce, so the others wait for all of it: on processors at the end of
    the step, on accelerators in the next all-reduce. Work before the all-reduce would hide in part, and
    more so the less it is: replicas never come to it at the same moment, and whoever is first waits anyway.
    """

    def __init__(self, share: float, devices: Sequence[str]) -> None:
        if len(devices) < 2:
            raise Unsupported("plant: 'slow_replica' makes others wait, and this cell has one replica")
        super().__init__(PLANT.name, share, devices[:1])
        self._replicas = len(devices)

    def after_update(self, loss: Any, weights: Sequence[Any]) -> Any:
        """The loss; replica 0's after the work."""
        if replica_at_hand(self._replicas) != 0:
            return loss
        # Reading a weight comes after all that was written to it; other ops of the update are not at hand.
        return self.work[0].then(loss, after=[weight.value.read_value() for weight in weights])


PLANT = PlantKind("slow_replica", "replica 0 alone does more work, and the others wait for it", SlowReplica)
