"""PyTorch on cards that are lent by the processor: `torch.cuda` shows two, and their tensors lie on the host.

All else is as on a card, from the launcher to the record: which process takes which, what is refused, the group, the
gate's arithmetic, memory, names. Only in a trial's own process, which ends with it.
"""

from collections.abc import Mapping
from typing import Any
from unittest import mock

from harness.engines.torch.engine import Torch
from harness.protocol.engine import Trainer
from harness.protocol.messages import Request
from harness.record.trial import Resources

CARDS, PEAK_BYTES = 2, 1000


def lend() -> None:
    """From now on, device kind `gpu` means such a card in this process."""
    import torch

    from harness.engines.torch import devices

    asked = {"is_available": True, "device_count": CARDS, "set_device": None, "synchronize": None}
    asked |= {"get_device_capability": (9, 0)}
    for name, answer in asked.items():
        setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    peaks = [10 * PEAK_BYTES]  # of a proof
    torch.cuda.max_memory_allocated = lambda *_: peaks[-1]
    torch.cuda.reset_peak_memory_stats = lambda *_: peaks.append(PEAK_BYTES)

    class Lent(devices.Card):
        joins: Mapping[str, Any] = {"backend": "cpu:gloo,cuda:gloo"}

        def __init__(self, request: Request) -> None:
            super().__init__(request)
            self._lent, self.device = self.device, torch.device("cpu")

        @property
        def resources(self) -> Resources:
            with mock.patch.object(self, "device", self._lent):
                return super().resources

        def put(self, what: Any) -> Any:
            return what

    devices.PLACES = {**devices.PLACES, "gpu": Lent}


class LentTorch(Torch):
    """PyTorch and its lent cards."""

    def trainer(self, request: Request) -> Trainer:
        lend()
        return super().trainer(request)
