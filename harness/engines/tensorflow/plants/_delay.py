"""Planted time in a loop of TensorFlow's."""

from harness.engines.tensorflow.plants.base import Planted
from harness.trial.delay import Delay


class PlantedDelay(Delay, Planted):
    """Makes each window longer; in the traced step it does nothing."""
