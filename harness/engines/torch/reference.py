"""The reference under PyTorch: a module of its own that knows no other process and no optimizer."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.func import functional_call
from torch.nn import functional

from harness.engines.torch.devices import Processor
from harness.trial.same_work.optimizers import Optimizer
from harness.trial.same_work.reference import ShareByShare
from harness.trial.same_work.state import Pass, State, StateOrder

if TYPE_CHECKING:
    from harness.trial.same_work.reference import Batch


def as_tensors(x: Any, y: Any) -> tuple[Any, Any]:
    """NumPy's batch [b, h, w, c] as PyTorch wants it: channels first, and labels of 64 bits.

    Copied: a view of one channel has the strides of channels last, by which PyTorch chooses its kernels.
    """
    first = np.array(x.transpose(0, 3, 1, 2), order="C")
    return torch.from_numpy(first), torch.from_numpy(y.astype(np.int64))


class TorchShares(ShareByShare):
    """See `ShareByShare`. `module` is built for it alone: a copy of the trained one would have the hooks and the parts
    that a way to train has put there. It stays on the host; what it computes with lies on `device` while it does."""

    def __init__(
        self,
        module: Any,
        device: Processor,
        layout: StateOrder,
        optimizer: Optimizer,
        replicas: int,
        arithmetic: str,
    ) -> None:
        super().__init__(layout, optimizer, replicas, arithmetic)
        self._module, self._device = module, device

    def shares(self, state: State, batch: "Batch") -> list[Pass]:
        """Each in training mode: a replica normalises by its own share."""
        put = self._device.put
        weights = {
            name: put(torch.tensor(np.float32(state.weights[name]))) for name, _ in self._module.named_parameters()
        }
        parameters = [weight.requires_grad_() for weight in weights.values()]
        found = []
        for own, share in self._of_each(state, batch):
            buffers = {name: put(torch.tensor(np.float32(value))) for name, value in own.items()}
            x, y = map(put, as_tensors(*(values[share] for values in batch)))
            logits = functional_call(self._module, {**weights, **buffers}, (x,))
            loss = functional.cross_entropy(logits, y, reduction="sum") / len(batch[1])
            gradients = torch.autograd.grad(loss, parameters)
            found.append(
                Pass(
                    float(loss),
                    {name: gradient.cpu().numpy() for name, gradient in zip(weights, gradients, strict=True)},
                    {name: buffers[name].cpu().numpy() for name in state.statistics},
                )
            )
        return found
