"""An input that makes every step wait for it, and burns no processor time."""

import time
from collections.abc import Sequence

from harness.trial.plants._delay import Delay
from harness.trial.plants.base import Planted, PlantKind, on_processors


def _build(share: float, devices: Sequence[str]) -> Planted:
    return Delay(share, time.sleep, every_step=on_processors(devices))


PLANT = PlantKind("input_stall", "the input makes each step wait and burns no processor time", _build)
