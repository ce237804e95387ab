"""Workers that sleep before their steps, each in its turn, so that the others wait for it; or all of them alike."""

from collections.abc import Sequence

from harness.engines.tensorflow.plants.base import Planted, PlantKind
from harness.record.trial import Plant
from harness.trial.delay import SLOW_WORKER, WORKER_DELAY, WorkerDelay


class PlantedWorkerDelay(WorkerDelay, Planted):
    """Before each step; in the traced step it does nothing."""


def _build(plant: Plant, _: Sequence[str]) -> Planted:
    return PlantedWorkerDelay(plant)


PLANTS = (
    PlantKind(SLOW_WORKER, "before each step another worker sleeps, and the others wait for it", _build),
    PlantKind(WORKER_DELAY, "before each step all workers sleep", _build),
)
