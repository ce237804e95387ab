"""Horovod with something planted in its steps for `explain` to find: slow input as a cross-device op, a slow update as
an engine of its own, since in one process nothing crosses.

With `slow_input` each batch comes late, and the instrument without an update averages no gradients either. `auto` is
Horovod as it is.
"""

import time
from typing import Any

from harness.engines.horovod.engine import Horovod
from harness.protocol.engine import Trainer
from harness.protocol.messages import Request
from harness.record.explain import FORWARD_BACKWARD, NO_UPDATE
from harness.spec.catalogue import Catalogue
from tests.engines.ops import with_ops
from tests.engines.torch.planted import PLANTED_S, SLOW_INPUT, late


def planted_trainer(request: Request) -> Trainer:
    """A trainer with what the request's cell asks for."""
    from harness.engines.horovod.trainer import HorovodTrainer

    class PlantedTrainer(HorovodTrainer):
        def __init__(self, request: Request) -> None:
            super().__init__(request)
            self._plant = self._cell.cross_device_op == SLOW_INPUT
            if self._plant:
                self._data.batches = late(self._data.batches)  # type: ignore[method-assign]

        @property
        def _op(self) -> str:
            """Gradients travel as they are."""
            return "auto"

        def _without(self, name: str) -> Any:
            return super()._without(FORWARD_BACKWARD if self._plant and name == NO_UPDATE else name)

    return PlantedTrainer(request)


class PlantedHorovod(Horovod):
    """Horovod and what is planted in it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), (SLOW_INPUT,))

    def trainer(self, request: Request) -> Trainer:
        return planted_trainer(request)


def waiting(apply: Any) -> Any:
    """The same update, once time has passed in the program."""
    import tensorflow as tf

    def applied(pairs: Any) -> Any:
        tf.py_function(lambda: time.sleep(PLANTED_S), [], [])
        return apply(pairs)

    return applied


class SlowHorovod(Horovod):
    """Horovod whose updates wait."""

    def trainer(self, request: Request) -> Trainer:
        from harness.engines.horovod.trainer import HorovodTrainer

        trainer = HorovodTrainer(request)
        optimizer = trainer._way.optimizer
        optimizer.apply_gradients = waiting(optimizer.apply_gradients)
        return trainer
