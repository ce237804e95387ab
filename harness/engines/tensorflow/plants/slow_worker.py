"""Workers that sleep before their steps, each in its turn, so that the others wait for it; or all of them alike.

What the two differ in is waiting alone: a worker sleeps as long in both, in the mean of its steps. One that is always
slow would be slow where no other waits for it, too, and an arm of `explain` takes as long as its slowest worker.
"""

import time
from collections.abc import Sequence

from harness.engines.tensorflow.plants._delay import StepDelay
from harness.engines.tensorflow.plants.base import Planted, PlantKind
from harness.errors import Unsupported
from harness.record.trial import Plant


class WorkerDelay(StepDelay):
    """`plant.each` seconds a step of each worker, in the mean over a window.

    A window's time is its slowest worker's, so in each window all sleep as often: in the first steps of one that has
    not a whole number of turns they sleep alike. How many steps a window has, the one before it tells.
    """

    def __init__(self, plant: Plant, *, in_turn: bool) -> None:
        if plant.each is None:
            raise Unsupported(f"plant: '{plant.kind}' is seconds of each step, and no share of it")
        super().__init__(plant.each, time.sleep)
        self._in_turn = in_turn
        self._step = self._first_in_turn = 0
        """Steps of this window so far; those in which all sleep alike."""

    def window_begins(self) -> None:
        """It has as many steps as the one before."""
        self._first_in_turn, self._step = self._step % self.workers, 0

    def before_step(self) -> None:
        """Sleep, if it is this worker's turn: all workers count the same steps."""
        turn = self._step - self._first_in_turn
        if not self._in_turn or turn < 0:
            self._sleep(self._each_s)
        elif turn % self.workers == self.worker:
            self._sleep(self.workers * self._each_s)
        self._step += 1

    def _sleep(self, seconds: float) -> None:
        self._owed += seconds
        self._spend_what_is_owed()


def _in_turn(plant: Plant, _: Sequence[str]) -> Planted:
    return WorkerDelay(plant, in_turn=True)


def _alike(plant: Plant, _: Sequence[str]) -> Planted:
    return WorkerDelay(plant, in_turn=False)


PLANTS = (
    PlantKind("slow_worker", "before each step another worker sleeps, and the others wait for it", _in_turn),
    PlantKind("worker_delay", "before each step all workers sleep", _alike),
)
