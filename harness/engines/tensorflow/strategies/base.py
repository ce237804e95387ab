"""What a strategy must be able to do."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.reduction import check_reduction
from harness.spec.catalogue import StrategyTraits
from harness.spec.work import DistributedCell
from harness.trial.sums import ANY_MODEL, Tensors

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
    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """The tf.distribute strategy for `cell`; `cross_device_op` is None for TensorFlow's default.

        Raises Unsupported, with the reason, when it cannot run here.
        """

    def devices_of(self, built: "tf.distribute.Strategy", devices: Devices) -> Devices:
        """The replicas' devices, once `built` may have given them other names."""
        return devices

    def agree(self, built: "tf.distribute.Strategy") -> Callable[[float], float]:
        """A function that makes one number of what each process of the trial has measured by itself."""
        return lambda value: value

    def check_reduction(self, built: "tf.distribute.Strategy", tensors: Tensors = ANY_MODEL) -> str | None:
        """Whether what the replicas compute comes together rightly: None, or the evidence that it does not.

        `tensors` are the gradients of a step.
        """
        return check_reduction(built, tensors)
