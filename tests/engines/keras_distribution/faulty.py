"""keras.distribution with ways to train that are wrong, each as a cross-device op: one base case serves all of them.

`missing` leaves the last replica's examples out, `mean` divides gradients where the loss is a mean already, `late`
begins to once the gate has been passed, `stale` keeps the last device's old weights, `order` gives the last replica the
first one's examples, and `reordered` has the last process shuffle its own by another seed. With gradients that each
replica works out by itself, `apart` adds none up, `alone` all but the last replica's, which trains by its own, and
`left_out` those of all weights but one. What Keras says nothing about: `unset` is a distribution that was made and
never set, `whole` hands every replica the whole batch, and `unmatched` is a layout map whose keys match a part of a
path. `auto` is Keras as it is.
"""

from collections.abc import Iterator
from typing import Any

from harness.engines.keras_distribution.engine import KerasDistribution
from harness.engines.keras_distribution.loops.base import BATCH, MODEL, DistributionWay
from harness.engines.keras_distribution.loops.model_parallel import ModelParallelWay
from harness.engines.keras_distribution.trainer import KerasTrainer
from harness.protocol.engine import GATE_UPDATES, Trainer
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue
from harness.trial.same_work.batches import Data
from tests.engines.jax_faults import BETWEEN, copies_on, with_copies_on, wrongly_reduced
from tests.engines.ops import with_ops
from tests.engines.shares import in_another_order, with_the_first_ones_for_the_last

OF_STEPS = ("missing", *BETWEEN, "mean", "late", "stale", "order", "reordered")
SILENT = ("unset", "whole")
UNMATCHED = "unmatched"
FAULTS = (*OF_STEPS, *SILENT)
"""Those that a training whose weights are whole everywhere may have."""
LAST_GOOD = GATE_UPDATES + 1


class Unmatched(ModelParallelWay):
    layout = {"dense.*kernel": (None, MODEL)}  # noqa: RUF012  a frozen dataclass has it of its class


class FaultyTrainer(KerasTrainer):
    def __init__(self, request: Request) -> None:
        self._fault = request.training.cross_device_op
        if self._fault == "unset":
            import keras

            keras.distribution.set_distribution = lambda _: None
        super().__init__(request)
        if self._fault == "stale":
            right = self._training.step
            self._training.step = lambda batches: self._stale(right, batches)
        if self._fault in BETWEEN:
            self._passed = self._single.passed  # made here: while the step is traced Keras makes no variables

    @property
    def _way(self) -> DistributionWay:
        return Unmatched("model_parallel", "") if self._fault == UNMATCHED else super()._way

    @property
    def _share(self) -> Any:
        if self._fault == "order":
            return with_the_first_ones_for_the_last(super()._share, self._cell)
        several = self._fault == "whole" and self._request.member is not None
        return slice(None) if several else super()._share

    def _data_made(self, thread: bool = False) -> Data:
        right = super()._data_made(thread)
        wrong = self._fault == "reordered" and self._rank == self._cell.workers - 1
        return in_another_order(right) if wrong else right

    @property
    def _model(self) -> Any:
        model = super()._model
        if self._fault == "whole":
            self._distribution.get_data_layout = lambda shape: self._everywhere(shape)
        if self._fault in OF_STEPS:
            right = model.train_step
            model.train_step = lambda state, data: self._wrong(model, right, state, data)
        return model

    def _everywhere(self, shape: Any) -> Any:
        import keras

        alone = self._request.member is None
        axes = [None if alone else "batch", *(None for _ in shape[1:])]
        return keras.distribution.TensorLayout(axes, self._distribution.device_mesh)

    def _wrong(self, model: Any, right: Any, state: Any, data: Any) -> Any:
        """The step with examples that do not count, or with other gradients, as it is traced."""
        from jax import numpy as jnp

        n, (x, y, *_) = self._cell.replicas_in_sync, data
        names = self._layout.names
        apart = self._apart(dict(zip(names, state[0], strict=True)), x, y) if self._fault in BETWEEN else None
        if self._fault == "missing":
            counts = jnp.arange(len(y)) < len(y) - len(y) // n
            return right(state, (x, y, counts.astype("float32")))
        late = jnp.where(state[2][0] < LAST_GOOD, 1.0, 0.5)
        factor = {"mean": 1 / n, "late": late}.get(self._fault, 1.0)
        apply = model.optimizer.stateless_apply
        model.optimizer.stateless_apply = lambda own, gradients, trained: apply(
            own, [factor * g for g in gradients] if apart is None else [apart[name] for name in names], trained
        )
        try:
            return right(state, data)
        finally:
            model.optimizer.stateless_apply = apply

    def _apart(self, weights: dict[str, Any], x: Any, y: Any) -> dict[str, Any]:
        """The gradients of a step of which each replica does its part by itself, as in `shard_map`."""
        import jax
        from jax.sharding import PartitionSpec

        def of_replica(weights: dict[str, Any], x: Any, y: Any) -> dict[str, Any]:
            own = self._passed(weights, {}, x, y).gradients
            return wrongly_reduced(self._fault, own, BATCH, self._cell.replicas_in_sync)

        whole, cut = PartitionSpec(), PartitionSpec(BATCH)
        mesh = self._distribution.device_mesh.backend_mesh
        mapped = jax.shard_map(of_replica, mesh=mesh, in_specs=(whole, cut, cut), out_specs=whole, check_vma=False)
        found: dict[str, Any] = mapped(weights, x, y)
        return found

    def _stale(self, right: Any, batches: Iterator[Any]) -> Any:
        last = self._devices.devices[-1]
        before = copies_on(last, self._training.arrays[0])
        metrics = right(batches)
        weights, *rest = self._training.arrays
        self._training.arrays = (with_copies_on(last, weights, before), *rest)
        return metrics


class FaultyKeras(KerasDistribution):
    """keras.distribution and what is wrong with it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), (*FAULTS, UNMATCHED))

    def trainer(self, request: Request) -> Trainer:
        return FaultyTrainer(request)
