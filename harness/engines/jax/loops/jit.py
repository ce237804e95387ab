"""`jit` with shardings: the step of one device as it is, and XLA's partitioner puts in what several need."""

from typing import Any

from harness.engines.jax.loops.base import Way, WayKind
from harness.trial.same_work.state import Pass, State


class JitWay(Way):
    """Batches are cut and weights are whole on every device, by NamedSharding; XLA adds the gradients up.

    What is a mean over the batch in the program stays one over the whole batch, batch normalisation's too.
    """

    own_statistics = False

    def step(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        """Written for one device."""
        of = self.gradients(state, x, y)
        return self.trained.optimizer.updated(state, of.gradients, of.statistics), of.loss

    def gradients(self, state: State, x: Any, y: Any) -> Pass:
        """Written for one device, too."""
        return self.trained.passed(state.weights, state.statistics, x, y)

    def forward(self, state: State, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """Of the whole batch."""
        loss, statistics = self.trained.share_loss(state.weights, state.statistics, x, y, 1.0)
        return loss, statistics

    def summed(self, sent: list[Any]) -> list[Any]:
        """A sum along the dimension that is cut, which is what the gradient of a sum over examples is."""
        return [values.sum(axis=0) for values in sent]


LOOP = WayKind("jit", "jax.jit with NamedSharding: XLA puts in the all-reduce", JitWay)
