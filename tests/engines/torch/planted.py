"""PyTorch with something planted in its steps, each as a cross-device op, for `explain` to find.

`slow_input` makes each batch come late, and its instrument without an update adds no gradients up either; `slow_update`
makes each update last longer. `auto` is PyTorch as it is.
"""

import time
from collections.abc import Callable
from typing import Any

from harness.engines.torch.engine import Torch
from harness.protocol.engine import Trainer
from harness.protocol.messages import Request
from harness.record.explain import FORWARD_BACKWARD, NO_UPDATE
from harness.spec.catalogue import Catalogue
from tests.engines.ops import with_ops

SLOW_INPUT, SLOW_UPDATE = "slow_input", "slow_update"
PLANTED_S = 0.2
"""Many times a step of the perceptron, so that it binds the step whatever else the machine does, and so long that a
sleep which a busy machine makes some 0.05 s longer is still about as long as it was to be."""


def planted_trainer(request: Request) -> Trainer:
    """A trainer with what the request's cell asks for."""
    from harness.engines.torch.trainer import TorchTrainer

    class PlantedTrainer(TorchTrainer):
        def __init__(self, request: Request) -> None:
            super().__init__(request)
            self._plant = self._cell.cross_device_op
            if self._plant == SLOW_UPDATE:
                self._counted.optimizer.register_step_post_hook(lambda *_: time.sleep(PLANTED_S))
            if self._plant == SLOW_INPUT:
                self._data.batches = late(self._data.batches)  # type: ignore[method-assign]

        @property
        def _op(self) -> str:
            """Gradients travel as they are."""
            return "auto"

        def _without(self, name: str) -> Any:
            lacks_more = self._plant == SLOW_INPUT and name == NO_UPDATE
            return super()._without(FORWARD_BACKWARD if lacks_more else name)

    return PlantedTrainer(request)


def late(batches: Callable[..., Any]) -> Any:
    """The same batches, each placed so much later."""

    def placed_late(placed: Callable[..., Any]) -> Callable[..., Any]:
        def place(share: Any) -> Any:
            time.sleep(PLANTED_S)
            return placed(share)

        return place

    return lambda placed: batches(placed_late(placed))


class PlantedTorch(Torch):
    """PyTorch and what is planted in it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), (SLOW_INPUT, SLOW_UPDATE))

    def trainer(self, request: Request) -> Trainer:
        return planted_trainer(request)
