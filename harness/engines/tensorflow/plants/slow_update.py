"""An update that takes longer on every device."""

from collections.abc import Callable, Sequence
from typing import Any

from harness.engines.tensorflow.plants._calibration import rate_of
from harness.engines.tensorflow.plants._counted import CountedWork, replica_at_hand
from harness.engines.tensorflow.plants._products import Chain, passed_over
from harness.engines.tensorflow.plants.base import Keep, Planted, PlantKind
from harness.record.trial import Plant


class SlowUpdate(Planted):
    """Once it has updated its weights, every replica goes over a matrix again and again, element by element, as
    optimizers do."""

    def __init__(self, plant: Plant, devices: Sequence[str]) -> None:
        self._plant = plant
        self.work = [CountedWork(device, chain=Chain(device, passed_over)) for device in devices]

    def after_update(self, loss: Any, weights: Sequence[Any]) -> Any:
        """The loss, after the work, which comes after all that was written to the weights."""
        written = [weight.value.read_value() for weight in weights]
        return self.work[replica_at_hand(len(self.work))].then(loss, after=written)

    def calibrate(self, step: Callable[[], object], keep: Keep) -> None:
        """Find out how many passes make the step longer by the share, where nobody says how many there are to be."""
        rate = rate_of(self._plant, self.work, step, keep)
        for work in self.work:
            work.set_rate(rate)


PLANT = PlantKind("slow_update", "the update takes longer on every device", SlowUpdate)
