"""What a planted slow-down may do to a training loop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from harness.record.trial import Plant

Arrays = Mapping[str, "np.ndarray[Any, Any]"]
Keep = Callable[[str, Callable[[], Arrays]], Arrays]
"""(name, compute) -> what an earlier trial of the cell computed under that name, else what `compute` gives."""


class Planted:
    """What works in the steps of one loop. This one is nothing; a kind overrides what it needs.

    `before_forward` and `after_update` are called while a replica's part of the step is traced, `after_pull` and
    `before_push` while an update to parameter servers is; they must not change any result. The others are called by the
    loop.
    """

    worker, workers = 0, 1
    """Which of how many workers in lock-step has it."""

    of_input = False
    """Whether steps have it from their input: on batches that lie on the devices already there is none of it."""

    def before_forward(self, x: Any) -> Any:
        """The replica's part of the batch, handed to the model."""
        return x

    def after_update(self, loss: Any, weights: Sequence[Any]) -> Any:
        """The replica's loss, handed on once it has updated `weights`."""
        return loss

    def after_pull(self, weights: Sequence[Any]) -> Sequence[Any]:
        """The trained weights as they came from the servers, handed on."""
        return weights

    def before_push(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """The gradients, handed on to be sent; None of a weight that has none."""
        return gradients

    def before_step(self) -> None:
        """Another step is about to be issued."""

    def window_begins(self) -> None:
        """Steps follow one another from here on."""

    def window_ends(self, finish: Callable[[], object]) -> None:
        """The last step of a window was issued, and `finish` waits until the devices have done it.

        What comes before the next window is not the steps' time.
        """

    def calibrate(self, step: Callable[[], object], keep: Keep) -> None:
        """Find out how much to do; `step` runs one training step to its end. Raises HarnessError where it cannot be."""


@dataclass(frozen=True)
class PlantKind:
    """A registered kind. `build(plant, devices)` plants as much as `plant` says in steps of replicas on `devices`.

    It raises Unsupported, with the reason.
    """

    name: str
    summary: str
    build: Callable[["Plant", Sequence[str]], Planted]
    of_servers: bool = False
    """Whether it is in updates to parameter servers; the others are in steps of replicas."""


def on_processors(devices: Sequence[str]) -> bool:
    """Whether all devices are processors, on which a step has been done when its call returns."""
    return all("CPU" in name for name in devices)
