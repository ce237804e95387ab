"""An input that makes the steps wait for it, and burns no processor time."""

import time
from collections.abc import Sequence

from harness.engines.tensorflow.plants._delay import PlantedDelay
from harness.engines.tensorflow.plants.base import Planted, PlantKind


def _build(share: float, _: Sequence[str]) -> Planted:
    return PlantedDelay(share, time.sleep)


PLANT = PlantKind("input_stall", "the input makes the steps wait and burns no processor time", _build)
