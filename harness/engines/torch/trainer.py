"""A cell under PyTorch, as a trial sees it: built, trained by a loop, and open to the gate."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from harness.engines.torch import group
from harness.engines.torch.executed import inspect, of_instrument
from harness.engines.torch.instruments import holds_of_step, loss_of, step_without
from harness.engines.torch.loops import Averaging, loops
from harness.engines.torch.loops.ddp_hook import COMPRESSIONS
from harness.engines.torch.models import built
from harness.engines.torch.optimizers import CountedOptimizer
from harness.engines.torch.reference import TorchShares, as_tensors
from harness.protocol.engine import KnownStep, Pace
from harness.protocol.messages import Request
from harness.protocol.state import VariableState
from harness.record.trial import BATCH_NORMALISATION, Executed
from harness.spec.cell import TrainingCell
from harness.trial.instruments import Holds
from harness.trial.judgement import STATE_TOLERANCE
from harness.trial.same_work.batches import CLASSES
from harness.trial.same_work.catalogue import NONE
from harness.trial.same_work.instruments import Step, TakenApart
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.recovery import Recovering
from harness.trial.same_work.state import State, StateOrder
from harness.trial.same_work.trainer import MeanLoss, ReplicaAProcess, refuse_what_is_tensorflows

Array = np.ndarray[Any, Any]
STATE = "state.pt"
"""The file of a checkpoint."""
UNBIASED = "the moving variance is of the unbiased estimate, n ÷ (n − 1) times Keras'"


class TorchTrainer(group.OfOneDevice, TakenApart, Recovering, ReplicaAProcess):
    """See `harness.protocol.engine.Trainer`."""

    title = "PyTorch"

    def __init__(self, request: Request) -> None:
        refuse_what_is_tensorflows(request, self.title, "PyTorch's steps are eager here")
        cell = request.training
        self._request, self._cell = request, cell
        self._device = group.set_up(request)
        self._data = self._data_made(thread=True)
        self._module = self._device.put(built(cell.model, request.seed, CLASSES))
        self._averaging = self._around(self._module)
        self._counted = CountedOptimizer(cell.optimizer, list(self._module.parameters()))
        self._names = [name for name, _ in self._module.named_parameters()]
        self._layout = StateOrder(self._names, self._statistics, OPTIMIZERS[cell.optimizer].slots, 0)
        self._last: tuple[Any, Any] | None = None
        x, y = self._placed(self._data.share_of(self._data.gate[0]))
        self._averaging.settle(lambda called: functional.cross_entropy(called(x), y))

    def _around(self, module: Any) -> Averaging:
        """The loop's way; no strategy has nothing to average, so that it is one step whatever the loop is."""
        cell = self._cell
        packed = int(cell.packing.partition("=")[2]) if cell.packing != "default" else None
        if cell.strategy == NONE:
            return Averaging(module, packed)
        return self._averaging_of(cell)(module, packed, self._op)

    def _averaging_of(self, cell: TrainingCell) -> Callable[[Any, int | None, str], Averaging]:
        return loops()[cell.loop].build

    @property
    def _statistics(self) -> list[str]:
        """The moving averages; PyTorch's count of batches beside them is of no use to anything."""
        return [name for name, buffer in self._module.named_buffers() if buffer.is_floating_point()]

    @property
    def _sent(self) -> tuple[list[tuple[int, ...]], str]:
        return [tuple(p.shape) for p in self._module.parameters()], COMPRESSIONS[self._op].dtype

    def averaged(self, patterns: Sequence[Array], weight: float) -> list[Array]:
        """As gradients of a module of its own."""
        module = _Products([self._device.put(torch.from_numpy(np.float32(pattern))) for pattern in patterns])
        received = self._around(module).averaged(lambda called: called(weight))
        return [gradient.cpu().numpy() for gradient in received]

    def state(self) -> list[VariableState]:
        """This process's weights, statistics, slots and count."""
        found = dict(self._module.named_parameters())
        buffers = dict(self._module.named_buffers())
        slots = {
            slot: {name: self._counted.slot(slot, parameter) for name, parameter in found.items()}
            for slot in self._layout.slots
        }
        state = State(found, slots, {name: buffers[name] for name in self._statistics}, self._counted.steps)
        return self._layout.captured(state, _copy)

    def updates(self) -> int:
        """Steps of the optimizer."""
        return self._counted.steps

    @property
    def _remarks(self) -> dict[str, str]:
        return {BATCH_NORMALISATION: UNBIASED} if self._statistics else {}

    @functools.cached_property
    def _single(self) -> TorchShares:
        cell, module = self._cell, built(self._cell.model, self._request.seed, CLASSES)
        met = {COMPRESSIONS[self._op].arithmetic, self._device.arithmetic(module)}
        coarsest = max(sorted(met), key=STATE_TOLERANCE.__getitem__)
        return TorchShares(module, self._device, self._layout, OPTIMIZERS[cell.optimizer], cell.workers, coarsest)

    def synchronise(self) -> None:
        """Return when the device has done all that it was told."""
        self._device.wait()

    def run(self, pace: Pace) -> None:
        """Batch after batch."""
        self._run(pace, lambda loss: MeanLoss(loss, self.agree))

    def _placed(self, share: Any) -> tuple[Any, Any]:
        x, y = as_tensors(*share)
        return self._device.put(x), self._device.put(y)

    def _without(self, name: str) -> Step:
        return step_without(name, self._averaging, self._counted)

    def _held_by(self, step: Step, batch: tuple[Any, ...]) -> Holds:
        return holds_of_step(step, batch, self._averaging)

    def _step(self, x: Any, y: Any) -> Any:
        """One update; the loss of this process's share."""
        self._last = x, y
        self._counted.optimizer.zero_grad()
        loss = loss_of(self._averaging, x, y)
        loss.backward()
        self._averaging.after_backward()
        self._counted.optimizer.step()
        return loss.detach()

    def _known_step(self, batch: tuple[Any, Any]) -> KnownStep:
        loss = self._step(*self._placed(batch))
        return KnownStep(self.agree(float(loss)), same_program=True)

    def _mean(self, value: float) -> float:
        return group.mean(value)

    def _alone(self) -> None:
        assert self._last is not None
        x, y = self._last
        self._counted.optimizer.zero_grad()
        with self._averaging.unsynchronised():
            loss_of(self._averaging, x, y).backward()
        self._device.wait()

    def _write(self, folder: Path) -> None:
        """As PyTorch's tutorials do it. Of statistics each process has its own, and DDP gives all the first one's."""
        torch.save({"model": self._module.state_dict(), **self._counted.state_dict()}, folder / STATE)

    def _read(self, folder: Path) -> None:
        found = torch.load(folder / STATE, map_location=self._device.device, weights_only=True)
        self._module.load_state_dict(found.pop("model"))
        self._counted.load_state_dict(found)

    def executed(self) -> Executed:
        """The reductions of a step, and the input."""
        unlike = {**self._data.unlike, **self._remarks}
        found = inspect(self._averaging, self._counted.optimizer, self._data.stages, unlike)
        found = found if self._holds is None else of_instrument(found, self._instrument, self._holds)
        return self._device.told(found, self._module)


class _Products(nn.Module):  # type: ignore[misc]  # PyTorch is not there to be looked at
    """A module whose gradients are known: those of the sum of its parameters times constants are these."""

    def __init__(self, constants: list[Any]) -> None:
        super().__init__()
        self.constants = constants
        self.values = nn.ParameterList([torch.ones_like(constant) for constant in constants])

    def forward(self, weight: float) -> Any:
        """A number whose gradients are `weight` times the constants."""
        pairs = zip(self.values, self.constants, strict=True)
        return sum((value * (weight * constant)).sum() for value, constant in pairs)


def _copy(_kind: str, array: Any) -> tuple[Array, ...]:
    """Copied: a step overwrites it."""
    return (np.array(array.detach().cpu() if isinstance(array, torch.Tensor) else np.int32(array)),)
