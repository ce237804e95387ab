"""More work on every device."""

from collections.abc import Callable, Sequence
from typing import Any

from harness.engines.tensorflow.plants._calibration import rate_of
from harness.engines.tensorflow.plants._counted import CountedWork, replica_at_hand
from harness.engines.tensorflow.plants._delay import PlantedDelay
from harness.engines.tensorflow.plants._timed import TimedWork
from harness.engines.tensorflow.plants.base import Keep, Planted, PlantKind, on_processors
from harness.record.trial import Plant
from harness.trial.delay import above_placebo


class CountedDeviceWork(Planted):
    """Before its forward pass every replica multiplies matrices whose product nobody needs."""

    def __init__(self, plant: Plant, devices: Sequence[str]) -> None:
        self._plant = plant
        self.work = [CountedWork(device) for device in devices]

    def before_forward(self, x: Any) -> Any:
        """The batch, after the work: nothing of the step can run beside it."""
        import tensorflow as tf

        return self.work[replica_at_hand(len(self.work))].then(x, after=tf.nest.flatten(x))

    def calibrate(self, step: Callable[[], object], keep: Keep) -> None:
        """Find out how many products make the step longer by the share, where nobody says how many there are to be."""
        rate = rate_of(self._plant, self.work, step, keep)
        for work in self.work:
            work.set_rate(rate)


def _build(plant: Plant, devices: Sequence[str]) -> Planted:
    if plant.each is None and on_processors(devices):
        return PlantedDelay(above_placebo(plant.share), TimedWork(devices))
    return CountedDeviceWork(plant, devices)


PLANT = PlantKind("device_work", "more work on every device", _build)
