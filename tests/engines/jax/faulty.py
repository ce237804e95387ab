"""JAX with ways to train that are wrong, each as a cross-device op: so that one base case serves all of them.

`missing` leaves the last replica's gradient out, `apart` adds no gradients up, `alone` adds up all but the last
replica's, which trains by its own, `left_out` adds up those of all weights but one, `mean` divides where a sum belongs,
`stale` keeps the last device's old weights, `order` gives the last replica the first one's examples, `reordered` has
the last process shuffle its own by another seed, `late` begins to leave the gradient out once the gate has been passed,
and `again` adds up what is added up already, as the recipe of `pmap` does under `shard_map` as it is by default. `auto`
is JAX as it is.
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
from harness.trial.same_work.batches import Data
from harness.trial.same_work.state import Pass, State
from tests.engines.jax_faults import BETWEEN, copies_on, with_copies_on, wrongly_reduced
from tests.engines.ops import with_ops
from tests.engines.shares import in_another_order, with_the_first_ones_for_the_last

FAULTS = ("missing", *BETWEEN, "mean", "stale", "order", "reordered", "late", "again")
OF_STATE_OR_DATA = ("stale", "order", "reordered")
"""Beside the step, which is right."""
LAST_GOOD = GATE_UPDATES + 1


def scaled(gradients: Any, factor: Any) -> Any:
    return {name: gradient * factor for name, gradient in gradients.items()}


class FaultyShardMap(ShardMapWay):
    fault = ""

    def passed_over_devices(self, state: State, x: Any, y: Any) -> Pass:
        """With the loss as it should be."""
        from jax import lax
        from jax import numpy as jnp

        of = self.passed(state, x, y)
        loss = lax.psum(of.loss, AXIS)
        if self.fault in BETWEEN:
            reduced = wrongly_reduced(self.fault, of.gradients, AXIS, len(self.trained.devices))
            return of._replace(loss=loss, gradients=reduced)
        gradients = of.gradients
        is_last = lax.axis_index(AXIS) == len(self.trained.devices) - 1
        if self.fault == "missing":
            gradients = scaled(gradients, jnp.where(is_last, 0.0, 1.0))
        if self.fault == "late":
            gradients = scaled(gradients, jnp.where(is_last & (state.updates >= LAST_GOOD), 0.0, 1.0))
        return of._replace(loss=loss, gradients=self.over_devices(gradients))

    def over_devices(self, values: Any) -> Any:
        from jax import lax

        return lax.pmean(values, AXIS) if self.fault == "mean" else super().over_devices(values)

    def mapped(self, function: Any, given: Any, gives: Any) -> Any:
        """As `shard_map` is by default for `again`: JAX then adds up the gradients of whole weights itself."""
        import jax

        if self.fault != "again":
            return super().mapped(function, given, gives)
        return jax.shard_map(function, mesh=self.mesh, in_specs=given, out_specs=gives)


class FaultyJit(JitWay):
    fault = ""

    def step(self, state: State, x: Any, y: Any) -> tuple[State, Any]:
        of = self._wrong(state, x, y)
        return self.trained.optimizer.updated(state, of.gradients, of.statistics), of.loss

    def _wrong(self, state: State, x: Any, y: Any) -> Pass:
        """What XLA puts in it cannot leave out: what devices do apart is in a `shard_map` inside the step."""
        from jax import numpy as jnp

        if self.fault in BETWEEN:
            return with_fault(FaultyShardMap, self.fault)(self.trained).gradients(state, x, y)
        of = self.gradients(state, x, y)
        right = of.gradients
        replicas = len(self.trained.devices)
        share = len(y) // replicas
        without_last = self.trained.passed(state.weights, state.statistics, x[:-share], y[:-share]).gradients
        late = {name: jnp.where(state.updates < LAST_GOOD, right[name], without_last[name]) for name in right}
        wrong = {
            "missing": without_last,
            "mean": scaled(right, 1 / replicas),
            "late": late,
            "again": scaled(right, replicas),
        }
        return of._replace(gradients=wrong[self.fault])


def with_fault(way: type[Way], fault: str) -> type[Way]:
    """The way with one of its faults."""
    return type(f"{way.__name__}_{fault}", (way,), {"fault": fault})


class FaultyTrainer(JaxTrainer):
    def _loop_of(self, cell: TrainingCell) -> WayKind:
        fault = cell.cross_device_op
        if fault not in FAULTS or fault in OF_STATE_OR_DATA:
            return super()._loop_of(cell)
        loop: type[Way] = {"jit": FaultyJit, "shard_map": FaultyShardMap}[cell.loop]
        return WayKind(cell.loop, fault, with_fault(loop, fault))

    @property
    def _share(self) -> Any:
        own, cell = super()._share, self._request.training
        return with_the_first_ones_for_the_last(own, cell) if cell.cross_device_op == "order" else own

    def _data_made(self, thread: bool = False) -> Data:
        right, cell = super()._data_made(thread), self._request.training
        wrong = cell.cross_device_op == "reordered" and self._rank == cell.workers - 1
        return in_another_order(right) if wrong else right

    def _step(self, x: Any, y: Any) -> Any:
        if self._request.training.cross_device_op != "stale":
            return super()._step(x, y)
        names, last = self._layout.names, self._trained.devices[-1]
        before = copies_on(last, self._weights)
        loss = super()._step(x, y)
        weights = dict(zip(names, with_copies_on(last, self._weights, before), strict=True))
        self._state = self._state._replace(weights=weights)
        return loss


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
