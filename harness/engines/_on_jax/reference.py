"""The reference on this process's first device: a compiled program that knows no mesh and no optimizer."""

from typing import TYPE_CHECKING

from harness.engines._on_jax.devices import TrialDevices
from harness.engines._on_jax.model import TrainedModel
from harness.trial.same_work.reference import ShareByShare
from harness.trial.same_work.state import Pass, State, StateOrder

if TYPE_CHECKING:
    from harness.trial.same_work.reference import Batch


class JaxShares(ShareByShare):
    """See `ShareByShare`."""

    def __init__(self, trained: TrainedModel, layout: StateOrder, devices: TrialDevices) -> None:
        import jax

        super().__init__(layout, trained.optimizer, len(trained.devices), devices.arithmetic)
        self._device = devices.own[0]
        self.passed = jax.jit(trained.passed)
        """Forward and backward of one device's examples, on the device that they lie on."""

    def shares(self, state: State, batch: "Batch") -> list[Pass]:
        """Where statistics are of the whole batch, each pass is over all of it, and only the share's examples count."""
        import jax
        import numpy as np

        weights = jax.device_put({name: np.float32(value) for name, value in state.weights.items()}, self._device)
        together = bool(self._layout.statistics) and not self._layout.own
        found = []
        for statistics, share in self._of_each(state, batch):
            counts = np.zeros(len(batch[1]), np.float32)
            counts[share] = 1
            part = (*batch, counts) if together else (*(values[share] for values in batch), counts[share])
            own = {name: np.float32(value) for name, value in statistics.items()}
            found.append(self.passed(weights, *jax.device_put((own, *part), self._device)))
        return found
