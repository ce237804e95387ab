"""What a strategy must be able to do."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from harness.spec.catalogue import StrategyTraits
from harness.spec.cell import Cell
from harness.trial.devices.base import Devices

if TYPE_CHECKING:
    import tensorflow as tf


class Strategy(ABC):
    """A strategy. `build` runs in a trial's process only."""

    traits: StrategyTraits

    @property
    def name(self) -> str:
        """The name in specs and records."""
        return self.traits.name

    @abstractmethod
    def build(self, cell: Cell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """The tf.distribute strategy for `cell`; `cross_device_op` is None for TensorFlow's default.

        Raises Unsupported, with the reason, when it cannot run here.
        """
