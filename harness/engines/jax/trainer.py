"""A cell under JAX, as a trial sees it: built, trained by a loop, and open to the gate."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.engines.jax.devices import set_up
from harness.engines.jax.executed import inspect
from harness.engines.jax.loops import WayKind, loops
from harness.engines.jax.loops.base import TrainedModel
from harness.engines.jax.models import models
from harness.engines.jax.reference import JaxShares
from harness.errors import Unsupported
from harness.protocol.engine import KnownStep, Pace
from harness.protocol.messages import Request
from harness.protocol.state import VariableState
from harness.record.trial import Executed, Resources
from harness.spec.cell import TrainingCell
from harness.trial.same_work.architectures import ANOTHER_START
from harness.trial.same_work.batches import CLASSES, Data
from harness.trial.same_work.catalogue import NONE
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.state import StateOrder
from harness.trial.same_work.trainer import SameWorkTrainer, refuse_what_is_tensorflows
from harness.trial.sums import judge_sums, known_values

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

PLAIN = "jit"
"""The loop whose step is written for one device."""
UNLIKE = {
    "initial_weights": ANOTHER_START,
    "compiler": "XLA compiles the whole step",
    "threads": "all devices share one pool",
    "data": "the same digits in another order",
}
"""What is not as under TensorFlow."""
OVER_ALL = "batch normalisation is over the global batch, and TensorFlow's over a replica's own share"


class JaxTrainer(SameWorkTrainer):
    """See `harness.protocol.engine.Trainer`."""

    alone: Callable[[], None] | None = None

    def __init__(self, request: Request) -> None:
        import numpy as np

        check(request)
        cell = request.training
        self._request, self._devices = request, set_up(request)
        model = models()[cell.model]
        architecture = model.architecture
        trained = TrainedModel(model, OPTIMIZERS[cell.optimizer], self._devices.devices, cell.global_batch_size)
        self._loop = self._loop_of(cell).build(trained)
        size, ahead = cell.global_batch_size, cell.prefetch
        self._data = Data(cell.data, architecture.input_shape, size, request.seed, ahead, self._share)
        weights = architecture.initial(np.random.default_rng(request.seed), CLASSES)
        statistics = architecture.statistics()
        own = cell.replicas_in_sync if self._loop.own_statistics else 0
        self._layout = StateOrder(list(weights), list(statistics), trained.optimizer.slots, own)
        self._state = self._loop.placed_state(self._layout.start(weights, statistics))
        self._trained = trained

    def _loop_of(self, cell: TrainingCell) -> WayKind:
        """The loop; no strategy has nothing to map over, so that it is one step whatever the loop is."""
        return loops()[PLAIN if cell.strategy == NONE else cell.loop]

    @property
    def resources(self) -> Resources:
        """A device a replica; of the threads what the cell asks for, and how many all devices share."""
        return Resources(
            logical_devices=[f"{device.platform}:{device.id}" for device in self._devices.own],
            physical_devices=self._devices.physical,
            shared=self._devices.shared,
            intra_op_threads=self._request.intra_op_threads,
            inter_op_threads=self._devices.threads,
        )

    def check_reduction(self) -> str | None:
        """Known values in the shapes of the gradients, as one list, by the way that the step's take."""
        import numpy as np

        tensors = [(weight.shape, "float32") for weight in self._weights]
        weights, patterns = known_values(len(self._trained.devices), tensors)
        ours = [np.float32(weight) for weight in weights[self._first : self._first + len(self._devices.own)]]
        sent = [np.stack([weight * pattern for weight in ours]) for pattern in patterns]
        received = [
            [np.asarray(shard.data) for shard in sorted(array.addressable_shards, key=lambda shard: shard.device.id)]
            for array in self._loop.reduced(sent)
        ]
        return judge_sums(received, patterns, weights)

    @property
    def _first(self) -> int:
        """The number of this process's first replica."""
        member = self._request.member
        return 0 if member is None else member.index * self._request.training.replicas

    @property
    def _share(self) -> slice:
        """This process's part of a global batch."""
        cell, member = self._request.training, self._request.member
        size, index = cell.global_batch_size // cell.workers, 0 if member is None else member.index
        return slice(index * size, (index + 1) * size)

    @property
    def _weights(self) -> list[Any]:
        return [self._state.weights[name] for name in self._layout.names]

    def state(self) -> list[VariableState]:
        """Every device's copy of weights, slots and count, by the device's number."""
        return self._layout.captured(self._state, self._copies)

    def _copies(self, kind: str, array: Any) -> "tuple[Array, ...]":
        """Copied: a step overwrites what it is given."""
        import numpy as np

        shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
        values = (np.array(shard.data) for shard in shards)
        return tuple(value[0] if kind == "statistic" and self._layout.own else value for value in values)

    def updates(self) -> int:
        """As the step counts them."""
        return int(self._state.updates)

    @property
    def _remarks(self) -> dict[str, str]:
        over_all = self._layout.statistics and not self._layout.own and len(self._trained.devices) > 1
        return {"batch_normalisation": OVER_ALL} if over_all else {}

    @functools.cached_property
    def _single(self) -> JaxShares:
        return JaxShares(self._trained, self._layout)

    def run(self, pace: Pace) -> None:
        """Batch after batch. Steps are issued and not waited for, as JAX does it."""
        batches = self._data.batches(self._loop.placed)
        while steps := pace.begin():
            for _ in range(steps):
                loss = self._step(*next(batches))
            pace.end(loss)

    def one_more(self) -> KnownStep:
        """A step on the gate's first batch with other labels: a compiled program takes no arguments of other types."""
        loss = float(self._step(*self._loop.placed(self._data.share_of(self._data.late))))
        self.synchronise()
        return KnownStep(loss, same_program=True)

    @functools.cached_property
    def _lowered(self) -> Any:
        return self._loop.lowered(self._state, *self._loop.placed(self._data.share_of(self._data.gate[0])))

    @functools.cached_property
    def _compiled(self) -> Any:
        return self._lowered.compile()

    def _step(self, x: Any, y: Any) -> Any:
        self._state, loss = self._compiled(self._state, x, y)
        return loss

    def synchronise(self) -> None:
        """Return when the state of every device is there."""
        import jax

        jax.block_until_ready(self._state)

    def agree(self, value: float) -> float:
        """The mean over the processes."""
        if self._request.member is None:
            return value
        import numpy as np
        from jax.experimental import multihost_utils

        return float(np.mean(multihost_utils.process_allgather(np.float32(value))))

    def executed(self) -> Executed:
        """The compiled step, and the input."""
        return inspect(self._lowered, self._compiled, self._data.stages, {**UNLIKE, **self._remarks})


def check(request: Request) -> None:
    """Unsupported, with the reason, for what this engine does not do."""
    refuse_what_is_tensorflows(request, "JAX", "JAX compiles every step with XLA")
    if request.inter_op_threads:
        raise Unsupported("inter_op_threads: JAX has one pool of threads; give --intra-op-threads")
