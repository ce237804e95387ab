"""A collective by itself under PyTorch: each process's buffer through `torch.distributed`, over Gloo or NCCL."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import distributed

from harness.engines.torch import group
from harness.protocol.messages import Request
from harness.record.trial import CALL, Executed
from harness.trial.collectives import ROOT
from harness.trial.same_work.collectives import SameSending

Array = np.ndarray[Any, Any]
CALLED = "of torch.distributed, for an all-reduce with a copy of what is sent, since it overwrites that"


class TorchSending(group.OfOneDevice, SameSending):
    """See `Sending`. What is received is written into a tensor that stays, as PyTorch's calls want it."""

    engine = "torch"
    title = "PyTorch"

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._device = group.set_up(request)
        self._sent = torch.zeros(self.cell.elements, device=self._device.device)
        roots = self.cell.collective == "broadcast" and self.first == ROOT
        self._received = self._sent if roots else self._sent.new_zeros(self._received_elements)

    def fill(self, own: Sequence[Array]) -> None:
        """Nothing is received already: only a step can put it there."""
        [values] = own
        self._received.fill_(math.nan)
        self._sent.copy_(torch.from_numpy(values))

    def step(self) -> Any:
        """Returns when this process has its part, on a card when that is on its way."""
        CALLS[self.cell.collective](self._sent, self._received)
        return self._received

    def wait(self, received: Any) -> None:
        self._device.wait()

    def arrays(self, received: Any) -> Sequence[Array]:
        """The one tensor."""
        return [received.cpu().numpy()]

    def agree(self, value: float) -> float:
        """The mean over the processes."""
        return group.mean(value)

    def executed(self) -> Executed:
        """The call; a step has no program."""
        cell, name = self.cell, self.cell.collective.replace("_", "-")
        reduces = cell.collective == "all_reduce"
        made_of = repr((distributed.get_backend(), cell.collective, str(self._sent.dtype)))
        found = Executed(
            operations={name: 1},
            packs=1 if reduces else 0,
            pack_bytes=[cell.size] if reduces else [],
            fingerprint=hashlib.sha256(made_of.encode()).hexdigest()[:16],
            unlike={CALL: CALLED},
        )
        return self._device.told(found)


def _all_reduce(sent: Any, received: Any) -> None:
    """It is done in place, so that another step would send something else: what is sent is copied, as DDP copies
    gradients into a bucket."""
    received.copy_(sent)
    distributed.all_reduce(received)


def _all_gather(sent: Any, received: Any) -> None:
    _now_or_before("all_gather_single", "all_gather_into_tensor")(received, sent)


def _reduce_scatter(sent: Any, received: Any) -> None:
    _now_or_before("reduce_scatter_single", "reduce_scatter_tensor")(received, sent)


def _broadcast(_sent: Any, received: Any) -> None:
    distributed.broadcast(received, src=ROOT)


def _now_or_before(name: str, before: str) -> Callable[..., Any]:
    """A function of `torch.distributed` by the name of 2.13, or by the one that it had before and warns of now."""
    found: Callable[..., Any] = getattr(distributed, name, None) or getattr(distributed, before)
    return found


CALLS: Mapping[str, Callable[[Any, Any], None]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
}
"""Each sends a tensor and writes another one."""
