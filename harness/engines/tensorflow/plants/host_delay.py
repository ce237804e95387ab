"""Python that keeps the process busy beside the steps, whatever they do."""

import time
from collections.abc import Sequence

from harness.engines.tensorflow.plants._delay import PlantedDelay, PlantedStepDelay
from harness.engines.tensorflow.plants.base import Planted, PlantKind
from harness.record.trial import Plant


def _build(plant: Plant, _: Sequence[str]) -> Planted:
    return PlantedDelay(plant.share, _spin) if plant.each is None else PlantedStepDelay(plant.each, _spin)


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


PLANT = PlantKind("host_delay", "Python keeps the process busy beside the steps", _build)
