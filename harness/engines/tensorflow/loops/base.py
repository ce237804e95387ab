"""What a loop must be able to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


class Pace(Protocol):
    """Says how many steps come next, and is told when they are done (`harness.trial.clock.Clock`)."""

    def begin(self) -> int:
        """Steps to run now; blocks while others have the turn; 0 ends the loop."""

    def end(self, loss: Any) -> None:
        """The steps were issued; `loss` is the last one's, possibly still on its way."""


class Loop(Protocol):
    """A training loop over a Training."""

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""

    def program(self) -> Any:
        """The traced program of one step, a tf.types.experimental.ConcreteFunction, or None before it ran."""

    def traces(self) -> int:
        """How often the step was traced: more than before means a retracing happened."""


@dataclass(frozen=True)
class LoopKind:
    """A registered loop."""

    name: str
    summary: str
    build: Callable[["Training"], Loop]
