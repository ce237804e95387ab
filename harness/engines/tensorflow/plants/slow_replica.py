"""One slow replica: the others wait for it."""

from collections.abc import Callable, Sequence
from typing import Any

from harness.engines.tensorflow.plants._calibration import rate_of
from harness.engines.tensorflow.plants._counted import CountedWork, replica_at_hand
from harness.engines.tensorflow.plants._delay import PlantedDelay
from harness.engines.tensorflow.plants._timed import TimedWork
from harness.engines.tensorflow.plants.base import Keep, Planted, PlantKind, on_processors
from harness.errors import Unsupported
from harness.record.trial import Plant
from harness.trial.delay import above_placebo


class CountedSlowReplica(Planted):
    """Replica 0 alone does more work, once it has updated its weights, before its step is done.

    The replicas have just met in the all-reduce, so the others wait for all of it in the next one. Work before the
    all-reduce would hide in part, and more so the less it is: replicas never come to it at the same moment, and
    whoever is first waits anyway.
    """

    def __init__(self, plant: Plant, devices: Sequence[str]) -> None:
        self._plant, self._replicas = plant, len(devices)
        self.work = CountedWork(devices[0])

    def after_update(self, loss: Any, weights: Sequence[Any]) -> Any:
        """The loss; replica 0's after the work."""
        if replica_at_hand(self._replicas) != 0:
            return loss
        # Reading a weight comes after all that was written to it; other ops of the update are not at hand.
        return self.work.then(loss, after=[weight.value.read_value() for weight in weights])

    def calibrate(self, step: Callable[[], object], keep: Keep) -> None:
        """Find out how many products make the step longer by the share, where nobody says how many there are to be."""
        self.work.set_rate(rate_of(self._plant, [self.work], step, keep))


def _build(plant: Plant, devices: Sequence[str]) -> Planted:
    if len(devices) < 2:
        raise Unsupported("plant: 'slow_replica' makes others wait, and this cell has one replica")
    if plant.each is None and on_processors(devices):
        return PlantedDelay(above_placebo(plant.share), TimedWork(devices[:1]))
    return CountedSlowReplica(plant, devices)


PLANT = PlantKind("slow_replica", "replica 0 alone does more work, and the others wait for it", _build)
