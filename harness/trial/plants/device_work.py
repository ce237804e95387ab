"""More work on every device in every step."""

from collections.abc import Callable, Sequence
from typing import Any

from harness.trial.plants._calibration import calibrated_rate
from harness.trial.plants._work import Work, replica_at_hand
from harness.trial.plants.base import Keep, Planted, PlantKind


class DeviceWork(Planted):
    """Before its forward pass every replica multiplies matrices whose product nobody needs."""

    def __init__(self, share: float, devices: Sequence[str]) -> None:
        self._share = share
        self.work = [Work(device) for device in devices]

    def before_forward(self, x: Any) -> Any:
        """The batch, after the work: nothing of the step can run beside it."""
        return self.work[replica_at_hand(len(self.work))].then(x, after=[x])

    def calibrate(self, step: Callable[[], object], keep: Keep) -> None:
        """Set how many products a step."""
        rate = calibrated_rate(PLANT.name, self._share, self.work, step, keep)
        for work in self.work:
            work.set_rate(rate)


PLANT = PlantKind("device_work", "more work on every device in every step", DeviceWork)
