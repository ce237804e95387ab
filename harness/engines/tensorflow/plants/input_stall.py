"""An input that makes the steps wait for it, and burns no processor time."""

import time
from collections.abc import Sequence

from harness.engines.tensorflow.plants._delay import PlantedDelay, PlantedStepDelay
from harness.engines.tensorflow.plants.base import Planted, PlantKind
from harness.record.trial import Plant


def _build(plant: Plant, _: Sequence[str]) -> Planted:
    if plant.each is not None:
        return PlantedStepDelay(plant.each, time.sleep, of_input=True)
    return PlantedDelay(plant.share, time.sleep, of_input=True)


PLANT = PlantKind("input_stall", "the input makes the steps wait and burns no processor time", _build)
