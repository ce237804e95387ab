"""Instruments under JAX: programs of all devices that lack one thing, compiled as the step is.

Each is given the state and gives one, so that a step is called by as many arguments and runs after the one before it.
What leaves out the sum over devices is mapped over them whatever the loop is: under `jit` XLA puts the sum in by
itself. The compiled program is then held against the compiled step.
"""

from collections.abc import Callable
from typing import Any

from harness.engines.jax.loops.base import Way
from harness.engines.jax.loops.shard_map import ShardMapWay
from harness.errors import Unsupported
from harness.record.explain import EMPTY, FORWARD, FORWARD_BACKWARD, NO_REDUCTION, NO_UPDATE, REDUCTION
from harness.trial.same_work.state import State

Traced = Callable[[State, Any, Any], tuple[State, Any, Any]]
"""(state, x, y) -> (the state afterwards, the loss, what else must be computed)."""


class EachByItself(ShardMapWay):
    """Every device has its own sums, which are those of its part of the batch."""

    def over_devices(self, values: Any) -> Any:
        """Nothing is added up."""
        return values


def lowered_without(name: str, way: Way, state: State, x: Any, y: Any) -> Any:
    """The program of an instrument as XLA gets it, of which x is rows that are added up where it does nothing else."""
    import jax

    several = len(way.trained.devices) > 1
    own = EachByItself(way.trained) if several else way
    if several and state.statistics and not way.own_statistics and name not in (EMPTY, NO_UPDATE):
        raise Unsupported(f"instrument '{name}': batch normalisation is over all devices here; give --loop shard_map")
    given = (way.of_state, way.cut, way.cut)
    besides = (way.everywhere, way.of_state.statistics) if name in (NO_UPDATE, FORWARD_BACKWARD) else None
    kept = (way.of_state, way.everywhere, besides)
    traced = _traced(name, way, own)
    return jax.jit(traced, in_shardings=given, out_shardings=kept, donate_argnums=0).lower(state, x, y)


def _traced(name: str, way: Way, own: Way) -> Traced:
    """`own` is the way without sums over devices."""
    from jax import numpy as jnp

    def gradients_of(way: Way) -> Traced:
        def traced(state: State, x: Any, y: Any) -> tuple[State, Any, Any]:
            of = way.gradients(state, x, y)
            return state, of.loss, (of.gradients, of.statistics)

        return traced

    def forward(state: State, x: Any, y: Any) -> tuple[State, Any, Any]:
        loss, statistics = own.forward(state, x, y)
        return state, loss, statistics

    programs: dict[str, Traced] = {
        NO_REDUCTION: lambda state, x, y: (*own.step(state, x, y), ()),
        NO_UPDATE: gradients_of(way),
        FORWARD_BACKWARD: gradients_of(own),
        FORWARD: forward,
        EMPTY: lambda state, *_: (state, jnp.zeros(()), ()),
        REDUCTION: lambda state, rows, _: (state, jnp.zeros(()), way.summed(rows)),
    }
    return programs[name]
