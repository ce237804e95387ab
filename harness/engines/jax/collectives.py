"""A collective by itself under JAX: a program of every device, of which each has a buffer, by `shard_map`."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.engines._on_jax.devices import in_order, mean, set_up
from harness.engines._on_jax.executed import inspect
from harness.engines.jax.loops.base import AXIS
from harness.protocol.messages import Request
from harness.record.trial import CALL, Executed, Resources
from harness.trial.collectives import ROOT
from harness.trial.same_work.collectives import SameSending

if TYPE_CHECKING:
    from harness.protocol.state import Array

CALLED = "of a compiled program, which is issued and not waited for"


class JaxSending(SameSending):
    """See `Sending`. What every device received is an output of the program, of which XLA can leave out nothing."""

    engine = "jax"
    title = "JAX"

    def __init__(self, request: Request) -> None:
        import numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        super().__init__(request)
        self._devices = set_up(request)
        self._cut = NamedSharding(Mesh(np.array(self._devices.devices), (AXIS,)), PartitionSpec(AXIS))
        self._sent: Any = None

    @property
    def resources(self) -> Resources:
        """The devices and the threads that they share."""
        return self._devices.resources

    def on_device(self, own: Any) -> Any:
        """What a device receives that sends `own`, [elements], traced."""
        from jax import lax
        from jax import numpy as jnp

        match self.cell.collective:
            case "all_reduce":
                return lax.psum(own, AXIS)
            case "all_gather":
                return lax.all_gather(own, AXIS, tiled=True)
            case "reduce_scatter":
                return lax.psum_scatter(own, AXIS, tiled=True)
        # as `multihost_utils.broadcast_one_to_all`: XLA has a broadcast for GPUs only (`lax.pbroadcast`)
        return lax.psum(jnp.where(lax.axis_index(AXIS) == ROOT, own, 0), AXIS)

    @functools.cached_property
    def _lowered(self) -> Any:
        import jax
        from jax import numpy as jnp

        mapped = jax.shard_map(
            self.on_device, mesh=self._cut.mesh, in_specs=self._cut.spec, out_specs=self._cut.spec, check_vma=False
        )
        whole = (self.cell.replicas_in_sync * self.cell.elements,)
        return jax.jit(mapped).lower(jax.ShapeDtypeStruct(whole, jnp.float32, sharding=self._cut))

    @functools.cached_property
    def _program(self) -> Any:
        return self._lowered.compile()

    def fill(self, own: "Sequence[Array]") -> None:
        """Each device of this process has its own part of one array."""
        import jax
        import numpy as np

        self._sent = jax.make_array_from_process_local_data(self._cut, np.concatenate(own))

    def step(self) -> Any:
        """Issued, and not waited for, as JAX does it."""
        return self._program(self._sent)

    def wait(self, received: Any) -> None:
        """Programs of one device run in the order in which they were issued."""
        import jax

        jax.block_until_ready(received)

    def arrays(self, received: Any) -> "Sequence[Array]":
        """Each device's part of the output."""
        import numpy as np

        return [np.array(shard.data) for shard in in_order(received)]

    def agree(self, value: float) -> float:
        """The mean over the processes."""
        return mean(value, self._request)

    def executed(self) -> Executed:
        """The compiled program."""
        return inspect(self._lowered, self._program, [], {CALL: CALLED})
