"""A trainer of a line."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness.protocol.state import Reference
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.reference import ShareByShare
from harness.trial.same_work.state import Pass, State, StateOrder
from harness.trial.same_work.trainer import SameWorkTrainer

Array = np.ndarray[Any, Any]
REPLICAS, FEATURES = 2, 5


class LeastSquaresShares(ShareByShare):
    """A line through points; knows how often it was asked for gradients."""

    asked = 0

    def shares(self, state: State, batch: tuple[Array, Array]) -> list[Pass]:
        self.asked += 1
        found, weight = [], np.float32(state.weights["w"])
        for _, share in self._of_each(state, batch):
            x, y = (part[share] for part in batch)
            away = x @ weight - y
            found.append(Pass((away**2).sum() / len(batch[1]), {"w": 2 * x.T @ away / len(batch[1])}, {}))
        return found


class LineTrainer(SameWorkTrainer):
    """A trial's, as far as its reference goes."""

    _remarks: Mapping[str, str] = {}  # type: ignore[assignment]
    _known_step: Any = None
    _single: Any = None

    def __init__(self, scratch: str, cell_id: str = "one", seed: int = 1, start: float = 0.5, batches: int = 7) -> None:
        self._layout = StateOrder(["w"], [], OPTIMIZERS["momentum"].slots, 0)
        self._single = LeastSquaresShares(self._layout, OPTIMIZERS["momentum"], REPLICAS)
        cell = SimpleNamespace(cell_id=cell_id)
        self._request: Any = SimpleNamespace(scratch=scratch, seed=seed, cell=cell, others_limit_s=1.0)
        generator = np.random.default_rng(batches)
        x = generator.normal(size=(3, 8, FEATURES)).astype(np.float32)
        self._data: Any = SimpleNamespace(gate=[(part, part.sum(axis=1)) for part in x])
        first = self._layout.start({"w": np.full(FEATURES, start, np.float32)}, {})
        self.initial = self._layout.captured(first, lambda _, array: (np.asarray(array),) * REPLICAS)

    def synchronise(self) -> None:
        """There is no device."""

    def found(self) -> Reference:
        return self.reference(self.initial)
