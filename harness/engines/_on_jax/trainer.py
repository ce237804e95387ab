"""What trainers whose arrays are JAX's are alike in."""

import functools
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from harness.engines._on_jax.devices import TrialDevices, in_order, mean
from harness.engines._on_jax.executed import Program
from harness.engines._on_jax.reference import JaxShares
from harness.engines._on_jax.work import holds_of_program
from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.record.trial import BATCH_NORMALISATION, OVER_GLOBAL_BATCH, Resources
from harness.trial.instruments import Holds
from harness.trial.same_work.catalogue import AXES_OF_TRAININGS
from harness.trial.same_work.instruments import Step, TakenApart
from harness.trial.same_work.state import State, StateOrder
from harness.trial.same_work.trainer import refuse_what_is_tensorflows
from harness.visible import plural

if TYPE_CHECKING:
    from harness.protocol.state import Array

UNLIKE = {"compiler": "XLA compiles the whole step"}
"""What is not as under TensorFlow, whatever the cell."""
LIBRARIES = "on GPUs XLA calls libraries for products, by which a step is not told apart here from one that lacks them"
JOINED = "XLA decides which sums are joined"
OVER_ALL = f"batch normalisation is {OVER_GLOBAL_BATCH}, and TensorFlow's over a replica's own share"


class OnJaxTrainer(TakenApart):
    """Of a trainer what follows from its devices and from the state that lies on them."""

    _devices: TrialDevices
    _layout: StateOrder
    _instead: Program | None = None
    """Of the instrument that is timed."""

    @property
    @abstractmethod
    def _arrays(self) -> Any:
        """The state, in any structure of JAX's arrays."""

    @property
    @abstractmethod
    def _laid(self) -> State:
        """The state by name, as it lies on the devices."""

    @property
    @abstractmethod
    def _single(self) -> JaxShares:
        """The reference; made once."""

    @property
    def _weights(self) -> list[Any]:
        """Those of the state, in the order of the layout."""
        weights = self._laid.weights
        return [weights[name] for name in self._layout.names]

    @property
    @abstractmethod
    def _whole(self) -> Program:
        """The step; made once."""

    def _held_by(self, step: Step, batch: tuple[Any, ...]) -> Holds:
        import numpy as np

        if self._devices.on_cards:
            raise Unsupported(f"instrument '{self._instrument}': {LIBRARIES}")
        before = [np.array(in_order(weight)[0].data) for weight in self._weights]
        step(*batch)
        after = [np.asarray(in_order(weight)[0].data) for weight in self._weights]
        changes = sum(not np.array_equal(*pair) for pair in zip(before, after, strict=True))
        program = self._whole if step == self._step or self._instead is None else self._instead
        return holds_of_program(program, changes)

    @property
    def resources(self) -> Resources:
        """The devices and the threads that they share."""
        return self._devices.resources

    @property
    def _first(self) -> int:
        """The number of this process's first replica."""
        return self._rank * self._request.training.replicas

    def _rows_sent(self, weights: "Sequence[float]", patterns: "Sequence[Array]") -> "list[Array]":
        """Of known values what this process's replicas send, a row each."""
        import numpy as np

        ours = [np.float32(weight) for weight in weights[self._first : self._first + self._request.training.replicas]]
        return [np.stack([weight * pattern for weight in ours]) for pattern in patterns]

    @property
    def _remarks(self) -> dict[str, str]:
        over_all = self._layout.statistics and not self._layout.own and self._request.training.replicas_in_sync > 1
        return {BATCH_NORMALISATION: OVER_ALL} if over_all else {}

    @property
    def _joined(self) -> dict[str, str]:
        """What of the step's sums is told beside their number, which is of more than gradients where devices exchange
        before these are there."""
        cell = self._request.training
        among = ["batch normalisation"] if BATCH_NORMALISATION in self._remarks else []
        among += ["forward and backward"] if cell.model_shards > 1 else []
        if not among and cell.replicas_in_sync == 1:
            return {}
        return {"packs": JOINED + (f", among them those of {' and of '.join(among)}" if among else "")}

    @property
    def _unlike(self) -> dict[str, str]:
        """What is not as under TensorFlow, by subject."""
        cell = self._request.training
        together = "the devices of a process share one pool" if cell.workers > 1 else "all devices share one pool"
        threads = {"threads": together} if self._request.cell.devices > 1 else {}
        processes = {"processes": f"one for {plural(cell.replicas, 'replica')}"} if cell.workers > 1 else {}
        return {**UNLIKE, **threads, **self._joined, **processes, **self._data.unlike, **self._remarks}

    @property
    def alone(self) -> Callable[[], None]:
        """Forward and backward on each device of this process, batch normalisation over the device's own examples."""
        return self._alone

    def _alone(self) -> None:
        import jax

        jax.block_until_ready([self._single.passed(*given) for given in self._given_alone])

    @functools.cached_property
    def _given_alone(self) -> list[tuple[Any, ...]]:
        """Of each device of this process what a pass is given, all of which lies there: weights, statistics, x, y, and
        how much an example counts."""
        import jax
        import numpy as np

        state, found = self._laid, []
        x, y = self._placed(self._data.share_of(self._data.gate[0]))
        for at, shard in enumerate(in_order(y)):
            weights = {name: in_order(array)[at].data for name, array in state.weights.items()}
            statistics = {name: in_order(array)[at].data for name, array in state.statistics.items()}
            if self._layout.own:
                statistics = {name: own[0] for name, own in statistics.items()}
            counts = jax.device_put(np.ones(len(shard.data), np.float32), shard.device)
            found.append((weights, statistics, in_order(x)[at].data, shard.data, counts))
        return found

    def synchronise(self) -> None:
        """Return when the state of every device is there."""
        import jax

        jax.block_until_ready(self._arrays)

    def agree(self, value: float) -> float:
        """The mean over the processes."""
        return mean(value, self._request)


def check(request: Request, title: str, taken: Collection[str] = AXES_OF_TRAININGS) -> None:
    """Unsupported, with the reason, for what the engine of a title does not do; see `refuse_what_is_tensorflows`."""
    refuse_what_is_tensorflows(request, title, "JAX compiles every step with XLA", taken)
