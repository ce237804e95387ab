"""`shard_map`: each device runs the step on its own part, and says itself what is added up."""

from typing import Any

from harness.engines.jax.loops.base import AXIS, Way, WayKind
from harness.trial.same_work.state import Pass, State


class ShardMapWay(Way):
    """Gradients of a device's own part, then `psum`. Batch normalisation is over a device's own part, too."""

    own_statistics = True

    def step(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        """One device's step, mapped over all."""
        whole, _ = self.specs
        return self._mapped_step(self.on_device, (self._of_state, whole))(state, x, y)  # type: ignore[no-any-return]

    def gradients(self, state: State, x: Any, y: Any) -> Pass:
        """One device's, mapped over all."""
        whole, cut = self.specs
        return self._mapped_step(self.passed_over_devices, Pass(whole, whole, cut))(state, x, y)  # type: ignore[no-any-return]

    def forward(self, state: State, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """The same; each device has the loss of its own part."""
        return self._mapped_step(self.forward_on_device, self.specs)(state, x, y)  # type: ignore[no-any-return]

    def _mapped_step(self, function: Any, gives: Any) -> Any:
        """`function` of a state and a batch on every device."""
        _, cut = self.specs
        return self.mapped(function, (self._of_state, cut, cut), gives)

    @property
    def _of_state(self) -> State:
        whole, cut = self.specs
        return State(whole, whole, cut, whole)

    def on_device(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        """The step as a device runs it, on its part of the batch."""
        of = self.passed_over_devices(state, x, y)
        return self.trained.optimizer.updated(state, of.gradients, of.statistics), of.loss

    def passed_over_devices(self, state: State, x: Any, y: Any) -> Pass:
        """`passed`, with what all devices have of loss and gradients added up."""
        of = self.passed(state, x, y)
        loss, gradients = self.over_devices((of.loss, of.gradients))
        return of._replace(loss=loss, gradients=gradients)

    def forward_on_device(self, state: State, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """The loss of a device's own part, and its statistics afterwards."""
        own = {name: values[0] for name, values in state.statistics.items()}
        loss, statistics = self.trained.share_loss(state.weights, own, x, y, 1.0)
        return loss, {name: values[None] for name, values in statistics.items()}

    def passed(self, state: State, x: Any, y: Any) -> Pass:
        """Forward and backward of a device's own part, from and to statistics with the device's own axis of one."""
        of = self.trained.passed(state.weights, {name: own[0] for name, own in state.statistics.items()}, x, y)
        return of._replace(statistics={name: own[None] for name, own in of.statistics.items()})

    def summed(self, sent: list[Any]) -> list[Any]:
        """Each device sends its own row."""

        def on_device(rows: list[Any]) -> list[Any]:
            own: list[Any] = self.over_devices([row[0] for row in rows])
            return own

        whole, cut = self.specs
        found: list[Any] = self.mapped(on_device, (cut,), whole)(sent)
        return found

    def over_devices(self, values: Any) -> Any:
        """What all devices have of `values`, arrays in any structure, added up."""
        from jax import lax

        return lax.psum(values, AXIS)

    @property
    def specs(self) -> tuple[Any, Any]:
        """Of what every device has whole, and of what is cut over them."""
        from jax.sharding import PartitionSpec

        return PartitionSpec(), PartitionSpec(AXIS)

    def mapped(self, function: Any, given: Any, gives: Any) -> Any:
        """`function` on every device, by the specs of what it is given and of what it gives.

        Replication is not checked (`check_vma`). Where it is, JAX itself adds up the gradient of what is whole on every
        device, and the sum that is written here would add it up again.
        """
        import jax

        return jax.shard_map(function, mesh=self.mesh, in_specs=given, out_specs=gives, check_vma=False)


LOOP = WayKind("shard_map", "jax.shard_map: each device's own gradients, then psum", ShardMapWay)
