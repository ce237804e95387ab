"""JAX with ways to train that are wrong, each as a cross-device op: so that one base case serves all of them.

`missing` leaves the last replica's gradient out, `mean` divides where a sum belongs, `stale` keeps the last device's
old weights, `late` begins to leave the gradient out once the gate has been passed, and `again` adds up what is added up
already, as the recipe of `pmap` does under `shard_map` as it is by default. `auto` is JAX as it is.
"""

import time
from typing import Any

from harness.engines.jax.collectives import JaxSending
from harness.engines.jax.engine import Jax
from harness.engines.jax.loops import WayKind
from harness.engines.jax.loops.base import AXIS, Way
from harness.engines.jax.loops.jit import JitWay
from harness.engines.jax.loops.shard_map import ShardMapWay
from harness.engines.jax.trainer import JaxTrainer
from harness.protocol.engine import GATE_UPDATES, Trainer
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell
from harness.trial.collectives import Sending
from harness.trial.same_work.state import State
from tests.engines.ops import with_ops

FAULTS = ("missing", "mean", "stale", "late", "again")
LAST_GOOD = GATE_UPDATES + 1


def scaled(gradients: Any, factor: Any) -> Any:
    return {name: gradient * factor for name, gradient in gradients.items()}


class FaultyJit(JitWay):
    fault = ""

    def step(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        from jax import numpy as jnp

        of = self.trained.passed(state.weights, state.statistics, x, y)
        right = of.gradients
        replicas = len(self.trained.devices)
        share = len(y) // replicas
        without_last = self.trained.passed(state.weights, state.statistics, x[:-share], y[:-share]).gradients
        late = {name: jnp.where(state.updates < LAST_GOOD, right[name], without_last[name]) for name in right}
        wrong = {
            "missing": without_last,
            "mean": scaled(right, 1 / replicas),
            "stale": right,
            "late": late,
            "again": scaled(right, replicas),
        }
        return self.trained.optimizer.updated(state, wrong[self.fault], of.statistics), of.loss


class FaultyShardMap(ShardMapWay):
    fault = ""

    def on_device(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        from jax import lax
        from jax import numpy as jnp

        of = self.passed(state, x, y)
        gradients = of.gradients
        is_last = lax.axis_index(AXIS) == len(self.trained.devices) - 1
        if self.fault == "missing":
            gradients = scaled(gradients, jnp.where(is_last, 0.0, 1.0))
        if self.fault == "late":
            gradients = scaled(gradients, jnp.where(is_last & (state.updates >= LAST_GOOD), 0.0, 1.0))
        return self.trained.optimizer.updated(state, self.over_devices(gradients), of.statistics), self._loss(of.loss)

    def _loss(self, loss: Any) -> Any:
        from jax import lax

        return lax.psum(loss, AXIS)

    def over_devices(self, values: Any) -> Any:
        from jax import lax

        return lax.pmean(values, AXIS) if self.fault == "mean" else super().over_devices(values)

    def mapped(self, function: Any, given: Any, gives: Any) -> Any:
        """As `shard_map` is by default for `again`: JAX then adds up the gradients of whole weights itself."""
        import jax

        if self.fault != "again":
            return super().mapped(function, given, gives)
        return jax.shard_map(function, mesh=self.mesh, in_specs=given, out_specs=gives)


class FaultyTrainer(JaxTrainer):
    def _loop_of(self, cell: TrainingCell) -> WayKind:
        fault = cell.cross_device_op
        if fault not in FAULTS:
            return super()._loop_of(cell)
        loop: type[Way] = {"jit": FaultyJit, "shard_map": FaultyShardMap}[cell.loop]
        return WayKind(cell.loop, fault, type(f"{loop.__name__}_{fault}", (loop,), {"fault": fault}))

    def _step(self, x: Any, y: Any) -> Any:
        if self._request.training.cross_device_op != "stale":
            return super()._step(x, y)
        before = {name: self._last_copy(weight) for name, weight in self._state.weights.items()}
        loss = super()._step(x, y)
        weights = {name: self._with_last(weight, before[name]) for name, weight in self._state.weights.items()}
        self._state = self._state._replace(weights=weights)
        return loss

    def _last_copy(self, array: Any) -> Any:
        import numpy as np

        return np.array(array.addressable_shards[-1].data)

    def _with_last(self, array: Any, value: Any) -> Any:
        """The same with another value on the last device."""
        import jax

        shards = [shard.data for shard in array.addressable_shards]
        shards[-1] = jax.device_put(value, array.addressable_shards[-1].device)
        return jax.make_array_from_single_device_arrays(array.shape, array.sharding, shards)


SENDING_FAULTS = ("element", "kept", "apart")
"""Of a collective by itself: the last device has a wrong element; after three steps nothing is sent; the last device
puts nothing in."""


class FaultySending(JaxSending):
    taken = JaxSending.taken | {"cross_device_op"}
    _steps = 0

    def on_device(self, own: Any) -> Any:
        from jax import lax
        from jax import numpy as jnp

        fault, is_last = self.cell.cross_device_op, lax.axis_index(AXIS) == self.cell.replicas_in_sync - 1
        received = super().on_device(jnp.where(is_last, 0, own) if fault == "apart" else own)
        return received.at[-1].add(jnp.where(is_last, 1, 0)) if fault == "element" else received

    def step(self) -> Any:
        self._steps += 1
        if self.cell.cross_device_op != "kept" or self._steps < 3:
            self._kept = super().step()
        return self._kept


class FaultyJax(Jax):
    """JAX and what is wrong with it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), (*FAULTS, *SENDING_FAULTS))

    def sending(self, request: Request) -> Sending:
        return FaultySending(request)

    def trainer(self, request: Request) -> Trainer:
        return FaultyTrainer(request)


class PacedTrainer(JaxTrainer):
    """Where it is to save once it is told to end, a step takes a tenth of a second: JAX looks for that signal once a
    second."""

    def step(self, number: int) -> None:
        if self._request.job is not None and self._request.job.preemption:
            time.sleep(0.1)
        super().step(number)


class PacedJax(Jax):
    """JAX whose jobs are there for a while."""

    def trainer(self, request: Request) -> Trainer:
        return PacedTrainer(request)
