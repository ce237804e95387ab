"""Trainings whose arrays are JAX's, as jobs have them: what every device has whole is saved as NumPy's arrays."""

import os
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.engines._on_jax.devices import in_order
from harness.engines._on_jax.trainer import OnJaxTrainer
from harness.errors import Unsupported
from harness.trial.job import PREEMPTED_STATUS
from harness.trial.same_work.recovery import Recovering

FILE = "state.npz"


class OnJaxRecovering(Recovering, OnJaxTrainer):
    """Of what can be taken up again what follows from the arrays, and from JAX's preemption service."""

    _saved: Callable[[int], None] | None = None
    """Told when this process ends since one was told to."""

    @abstractmethod
    def _go_back(self, arrays: Any) -> None:
        """Train on from these, in the structure of `_arrays`."""

    def _write(self, folder: Path) -> None:
        import jax
        import numpy as np

        leaves = jax.tree.leaves(self._arrays)
        np.savez(folder / FILE, *[np.array(in_order(leaf)[0].data) for leaf in leaves])

    def _read(self, folder: Path) -> None:
        import jax
        import numpy as np

        leaves, structure = jax.tree.flatten(self._arrays)
        with np.load(folder / FILE, allow_pickle=False) as found:
            values = [jax.device_put(found[f"arr_{n}"], leaf.sharding) for n, leaf in enumerate(leaves)]
        self._go_back(jax.tree.unflatten(structure, values))

    def step(self, number: int) -> None:
        """One update, waited for; where a process was told to end, all save after the same one."""
        super().step(number)
        if self._saved is not None:
            self._leave_if_told(number + 1, self._saved)

    def listen(self, saved: Callable[[int], None]) -> None:
        """By JAX's preemption service, which several processes have between them."""
        if self._request.member is None:
            raise Unsupported("JAX's preemption service is between processes, and this is one; see kill_worker")
        self._saved = saved

    def _leave_if_told(self, step: int, saved: Callable[[int], None]) -> None:
        from jax.experimental import multihost_utils

        if multihost_utils.reached_preemption_sync_point(step):
            self.save(step)
            self.agree(0.0)  # who leaves earlier ends the one that saves
            saved(step)
            os._exit(PREEMPTED_STATUS)
