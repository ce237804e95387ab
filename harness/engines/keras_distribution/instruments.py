"""Instruments under keras.distribution: what `fit` calls for each step, with one thing left out, jitted as Keras jits
its step.

Keras writes a step for one device, and XLA's partitioner puts in what several must exchange. What is to leave that out
is mapped over the devices, each with its own part of the batch. The compiled program is then held against the step's.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from harness.errors import Unsupported
from harness.record.explain import EMPTY, FORWARD, FORWARD_BACKWARD, NO_REDUCTION, NO_UPDATE, REDUCTION

TracedFit = Callable[[Any, Any], tuple[tuple[dict[str, Any], Any], Any]]
"""(state, batch) -> ((the metrics, what else must be computed), the state afterwards)."""
EACH_BY_ITSELF = (NO_REDUCTION, FORWARD_BACKWARD, FORWARD)
"""Instruments that add nothing up."""


def refuse_what_no_sum_is_apart_in(name: str, cut: bool, over_all: bool) -> None:
    """Unsupported where the instrument of a name cannot be told from the sum of the gradients: with weights that are
    `cut` over the devices, and where batch normalisation is `over_all` of them."""
    if cut and name in (*EACH_BY_ITSELF, REDUCTION):
        raise Unsupported(
            f"instrument '{name}': weights are cut, so that devices exchange within forward and backward, too"
        )
    if over_all and name in (*EACH_BY_ITSELF, REDUCTION):
        raise Unsupported(f"instrument '{name}': batch normalisation is over all devices here, and its sums with it")


def jitted_without(name: str, model: Any, state: Any, batch: Any, several: bool) -> Any:
    """The instrument of a name, a `TracedFit` that is jitted; state and batch are as the step gets them, on `several`
    devices.

    REDUCTION adds up what it gets instead of examples, arrays of a row for each device.
    """
    import jax

    traced = _traced(name, model)
    if several and name in EACH_BY_ITSELF:
        traced = _each_by_itself(traced, batch[0].sharding)
    kept = None
    if several:
        of_state = jax.tree.map(lambda array: array.sharding, state)
        kept = ((None, of_state[0] if name in (NO_UPDATE, REDUCTION) else None), of_state)
    return jax.jit(traced, donate_argnums=0, out_shardings=kept)


def _each_by_itself(traced: TracedFit, cut: Any) -> TracedFit:
    """`traced` on every device, with its own part of a batch that is `cut` over them."""
    import jax
    from jax.sharding import PartitionSpec

    parts = PartitionSpec(cut.spec[0])
    whole = PartitionSpec()
    mapped: TracedFit = jax.shard_map(
        traced, mesh=cut.mesh, in_specs=(whole, parts), out_specs=(whole, whole), check_vma=False
    )
    return mapped


def _traced(name: str, model: Any) -> TracedFit:
    from jax import numpy as jnp

    def gradients_of(state: Any, batch: Any) -> Any:
        with _unapplied(model.optimizer) as gradients:
            metrics, after = model.train_step(state, batch)
        return (metrics, list(gradients)), after

    def no_reduction(state: Any, batch: Any) -> Any:
        metrics, after = model.train_step(state, batch)
        return (metrics, ()), after

    def forward(state: Any, batch: Any) -> Any:
        (x, y), (trained, untrained, optimized, kept) = batch, state
        _, (loss, outputs, untrained, kept) = model.compute_loss_and_updates(
            trained, untrained, kept, x, y, None, training=True, optimizer_variables=optimized
        )
        metrics, kept = model._update_metrics_variables(kept, loss, x, y, outputs, None)
        return (metrics, ()), (trained, untrained, optimized, kept)

    def nothing(besides: Any) -> Any:
        return {"loss": jnp.zeros(())}, besides

    programs: dict[str, TracedFit] = {
        NO_REDUCTION: no_reduction,
        NO_UPDATE: gradients_of,
        FORWARD_BACKWARD: gradients_of,
        FORWARD: forward,
        EMPTY: lambda state, _: (nothing(()), state),
        REDUCTION: lambda state, batch: (nothing([rows.sum(axis=0) for rows in batch[0]]), state),
    }
    return programs[name]


@contextlib.contextmanager
def _unapplied(optimizer: Any) -> Iterator[list[Any]]:
    """While entered, an update changes nothing; what it is given as gradients is in the list."""
    apply, gradients = optimizer.stateless_apply, list[Any]()

    def keep(own: Any, given: Any, trained: Any) -> tuple[Any, Any]:
        gradients[:] = given
        return trained, own

    optimizer.stateless_apply = keep
    try:
        yield gradients
    finally:
        optimizer.stateless_apply = apply
