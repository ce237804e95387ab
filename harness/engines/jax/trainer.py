"""A cell under JAX, as a trial sees it: built, trained by a loop, and open to the gate."""

import functools
from typing import TYPE_CHECKING, Any

from harness.engines._on_jax.devices import in_order, set_up
from harness.engines._on_jax.executed import Program, inspect
from harness.engines._on_jax.model import TrainedModel
from harness.engines._on_jax.recovery import OnJaxRecovering
from harness.engines._on_jax.reference import JaxShares
from harness.engines._on_jax.trainer import check
from harness.engines.jax.instruments import lowered_without
from harness.engines.jax.loops import WayKind, loops
from harness.engines.jax.models import models
from harness.protocol.engine import KnownStep, Pace
from harness.protocol.messages import Request
from harness.protocol.state import VariableState
from harness.record.explain import REDUCTION
from harness.record.trial import Executed
from harness.spec.cell import TrainingCell
from harness.trial.copies import one_where_alike
from harness.trial.same_work.batches import CLASSES
from harness.trial.same_work.catalogue import NONE
from harness.trial.same_work.instruments import Step
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.state import State, StateOrder
from harness.trial.sums import judge_sums, known_values

if TYPE_CHECKING:
    from harness.protocol.state import Array

PLAIN = "jit"
"""The loop whose step is written for one device."""


class JaxTrainer(OnJaxRecovering):
    """See `harness.protocol.engine.Trainer`."""

    title = "JAX"

    def __init__(self, request: Request) -> None:
        import numpy as np

        check(request, self.title)
        cell = request.training
        self._request, self._devices = request, set_up(request)
        model = models()[cell.model]
        architecture = model.architecture
        trained = TrainedModel(model, OPTIMIZERS[cell.optimizer], self._devices.devices, cell.global_batch_size)
        self._loop = self._loop_of(cell).build(trained)
        self._data = self._data_made()
        weights = architecture.initial(np.random.default_rng(request.seed), CLASSES)
        statistics = architecture.statistics()
        own = cell.replicas_in_sync if self._loop.own_statistics else 0
        self._layout = StateOrder(list(weights), list(statistics), trained.optimizer.slots, own)
        self._state = self._loop.placed_state(self._layout.start(weights, statistics))
        self._trained = trained

    def _loop_of(self, cell: TrainingCell) -> WayKind:
        """The loop; no strategy has nothing to map over, so that it is one step whatever the loop is."""
        return loops()[PLAIN if cell.strategy == NONE else cell.loop]

    def check_reduction(self) -> str | None:
        """Known values in the shapes of the gradients, as one list, by the way that the step's take."""
        import numpy as np

        tensors = [(weight.shape, "float32") for weight in self._weights]
        weights, patterns = known_values(len(self._trained.devices), tensors)
        reduced = self._loop.reduced(self._rows_sent(weights, patterns))
        received = [[np.asarray(shard.data) for shard in in_order(array)] for array in reduced]
        return judge_sums(received, patterns, weights)

    @property
    def _arrays(self) -> State:
        return self._state

    @property
    def _laid(self) -> State:
        return self._state

    def state(self) -> list[VariableState]:
        """Every device's copy of weights, slots and count, by the device's number."""
        return self._layout.captured(self._state, self._copies)

    def _copies(self, kind: str, array: Any) -> "tuple[Array, ...]":
        import numpy as np

        values = (np.asarray(shard.data) for shard in in_order(array))
        own = kind == "statistic" and self._layout.own
        return one_where_alike(value[0] if own else value for value in values)

    def updates(self) -> int:
        """As the step counts them."""
        return int(self._state.updates)

    @functools.cached_property
    def _single(self) -> JaxShares:
        return JaxShares(self._trained, self._layout, self._devices)

    def run(self, pace: Pace) -> None:
        """Batch after batch. Steps are issued and not waited for, as JAX does it."""
        self._run(pace, lambda loss: loss)

    def _placed(self, share: Any) -> tuple[Any, Any]:
        return self._loop.share_on_devices(share)

    def _without(self, name: str) -> Step:
        import numpy as np

        x, y = self._placed(self._data.share_of(self._data.gate[0]))
        own = self._request.training.replicas
        rows = [np.zeros((own, *weight.shape), np.float32) for weight in self._weights] if name == REDUCTION else []
        sent = self._loop.in_parts(rows) if rows else None
        self._instead = Program.of(lowered_without(name, self._loop, self._state, sent or x, y))
        compiled = self._instead.compiled

        def step(x: Any, y: Any) -> Any:
            self._state, loss, _ = compiled(self._state, sent or x, y)
            return loss

        return step

    def _known_step(self, batch: tuple[Any, Any]) -> KnownStep:
        """By what was compiled, which takes no arguments of other types."""
        loss = float(self._step(*self._placed(batch)))
        self.synchronise()
        return KnownStep(loss, same_program=True)

    @functools.cached_property
    def _whole(self) -> Program:
        batch = self._placed(self._data.share_of(self._data.gate[0]))
        return Program.of(self._loop.lowered(self._state, *batch))

    def _step(self, x: Any, y: Any) -> Any:
        self._state, loss = self._whole.compiled(self._state, x, y)
        return loss

    def _go_back(self, arrays: State) -> None:
        self._state = arrays

    def executed(self) -> Executed:
        """The compiled program that is timed, and the input."""
        program = self._instead or self._whole
        return self._devices.told(inspect(*program, self._data.stages, self._unlike))
