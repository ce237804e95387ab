"""Planted time in a loop of TensorFlow's."""

from collections.abc import Callable

from harness.engines.tensorflow.plants.base import Planted
from harness.trial.delay import Delay, StepDelay


class PlantedDelay(Delay, Planted):
    """Makes each window longer; in the traced step it does nothing."""

    def __init__(self, share: float, spend: Callable[[float], None], *, of_input: bool = False) -> None:
        super().__init__(share, spend)
        self.of_input = of_input


class PlantedStepDelay(StepDelay, Planted):
    """As many seconds for each step, at the end of the window."""

    def __init__(self, each_s: float, spend: Callable[[float], None], *, of_input: bool = False) -> None:
        super().__init__(each_s, spend)
        self.of_input = of_input
