"""`shard_map`: each device runs the step on its own part, and says itself what is added up."""

from typing import Any

from harness.engines.jax.loops.base import AXIS, Loop, LoopKind, State


class ShardMapLoop(Loop):
    """Gradients of a device's own part, then `psum`."""

    def step(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        """One device's step, mapped over all."""
        return self.mapped(self.on_device, 2)(state, x, y)  # type: ignore[no-any-return]

    def on_device(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        """The step as a device runs it, on its part of the batch."""
        loss, gradients = self.work.gradients(state.weights, x, y)
        loss, gradients = self.over_devices((loss, gradients))
        return self.work.updated(state, gradients), loss

    def summed(self, sent: list[Any]) -> list[Any]:
        """Each device sends its own row."""

        def on_device(rows: list[Any]) -> list[Any]:
            own: list[Any] = self.over_devices([row[0] for row in rows])
            return own

        found: list[Any] = self.mapped(on_device, 0)(sent)
        return found

    def over_devices(self, values: Any) -> Any:
        """What all devices have of `values`, arrays in any structure, added up."""
        from jax import lax

        return lax.psum(values, AXIS)

    def mapped(self, function: Any, parts: int) -> Any:
        """`function` on every device: its first argument whole and `parts` more cut, or only one, cut.

        Replication is not checked (`check_vma`). Where it is, JAX itself adds up the gradient of what is whole on every
        device, and the sum that is written here would add it up again.
        """
        import jax
        from jax.sharding import PartitionSpec

        whole, cut = PartitionSpec(), PartitionSpec(AXIS)
        taken = (whole, *[cut] * parts) if parts else (cut,)
        return jax.shard_map(function, mesh=self.mesh, in_specs=taken, out_specs=whole, check_vma=False)


LOOP = LoopKind("shard_map", "jax.shard_map: each device's own gradients, then psum", ShardMapLoop)
