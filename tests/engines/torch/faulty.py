"""PyTorch with ways to train that are wrong, each as a cross-device op: so that one base case serves all of them.

`missing` leaves the last process's gradient out, `mean` divides once more, `apart` calls the module inside the wrapper,
`alone` does too, and averages in a group that the last process is no part of, `left_out` averages all weights but one,
`stale` keeps the last process's old weights, `order` gives the last process the first one's examples, `reordered` has
it shuffle its own by another seed, `hooked` doubles a gradient by a hook in the module, and `late` begins to leave the
gradient out once the gate has been passed. `auto` is PyTorch as it is.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.engines.torch.engine import Torch
from harness.engines.torch.loops import Averaging
from harness.protocol.engine import GATE_UPDATES, Trainer
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell
from harness.spec.work import DistributedCell
from harness.trial.collectives import Sending
from harness.trial.same_work.batches import Data
from tests.engines.ops import with_ops
from tests.engines.shares import in_another_order

FAULTS = ("missing", "mean", "apart", "alone", "left_out", "stale", "order", "reordered", "hooked", "late")
LAST_GOOD = GATE_UPDATES + 1
LEFT_OUT = "dense_1.weight"


def without_one(kind: type[Averaging]) -> type[Averaging]:
    """The same way, with a weight that each process keeps for itself: DDP ignores it, and the loop passes it over."""

    class WithoutOne(kind):  # type: ignore[misc,valid-type]
        def wrapped(self) -> Any:
            from torch.nn.parallel import DistributedDataParallel

            if isinstance(self.module, _products()):
                return super().wrapped()
            DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(self.module, [LEFT_OUT])
            return super().wrapped()

        def after_backward(self) -> None:
            kept = dict(self.module.named_parameters()).get(LEFT_OUT)
            own = None if kept is None else kept.grad.clone()
            super().after_backward()
            if kept is not None:
                kept.grad.copy_(own)

    return WithoutOne


def hooked(kind: type[Averaging]) -> type[Averaging]:
    """The same way, with a hook that doubles what the first layer's gradients come of: a copy of the module has it."""

    class Hooked(kind):  # type: ignore[misc,valid-type]
        def wrapped(self) -> Any:
            if not isinstance(self.module, _products()):
                self.module.dense_1.register_full_backward_hook(_doubled)
            return super().wrapped()

    return Hooked


def _doubled(_module: Any, of_input: Any, _of_output: Any) -> Any:
    return (2 * of_input[0],)


def _products() -> Any:
    from harness.engines.torch.trainer import _Products

    return _Products


def faulty_trainer(request: Request) -> Trainer:
    """A trainer with the fault of the request's cell."""
    from torch import distributed
    from torch.nn import functional

    from harness.engines.torch.trainer import TorchTrainer

    class FaultyTrainer(TorchTrainer):
        def __init__(self, request: Request) -> None:
            super().__init__(request)
            self._others = distributed.new_group(all_but_the_last(self._cell)) if self._fault == "alone" else None

        @property
        def _fault(self) -> str:
            return self._cell.cross_device_op

        @property
        def _op(self) -> str:
            """Beside the fault gradients travel as they are."""
            return "auto"

        @property
        def _is_last(self) -> bool:
            return self._rank == self._cell.workers - 1

        @property
        def _share(self) -> slice:
            own = super()._share
            return slice(0, own.stop - own.start) if self._fault == "order" and self._is_last else own

        def _data_made(self, thread: bool = False) -> Data:
            right = super()._data_made(thread)
            return in_another_order(right) if self._fault == "reordered" and self._is_last else right

        def _averaging_of(self, cell: TrainingCell) -> Callable[[Any, int | None, str], Averaging]:
            right = super()._averaging_of(cell)
            wrong = {"left_out": without_one, "hooked": hooked}.get(self._fault)
            return right if wrong is None else wrong(right)  # type: ignore[arg-type]

        def _step(self, x: Any, y: Any) -> Any:
            fault, late = self._fault, self.updates() >= LAST_GOOD
            unwrapped = fault in ("apart", "alone")
            parameters = list(self._module.parameters())
            before = [parameter.detach().clone() for parameter in parameters]
            self._last = x, y
            self._counted.optimizer.zero_grad()
            loss = functional.cross_entropy((self._module if unwrapped else self._averaging.called)(x), y)
            missing = self._is_last and (fault == "missing" or (fault == "late" and late))
            (loss * (0.0 if missing else 1.0)).backward()
            if not unwrapped:
                self._averaging.after_backward()
            for parameter in parameters if fault == "alone" and not self._is_last else []:
                distributed.all_reduce(parameter.grad, group=self._others)
                parameter.grad /= self._cell.workers - 1
            for parameter in parameters if fault == "mean" else []:
                parameter.grad /= self._cell.workers
            self._counted.optimizer.step()
            for parameter, old in zip(parameters, before, strict=True):
                if fault == "stale" and self._is_last:
                    parameter.data.copy_(old)
            return loss.detach()

    return FaultyTrainer(request)


def all_but_the_last(cell: DistributedCell) -> list[int]:
    """The numbers of processes."""
    return list(range(cell.workers - 1))


SENDING_FAULTS = ("element", "kept", "apart", "absent")
"""Of a collective by itself: the last process has a wrong element; after three steps nothing is sent; the last one is
no part of it and has what it sends; or it does not come at all."""


def faulty_sending(request: Request) -> Sending:
    """A collective with the fault of the request's cell."""
    from torch import distributed

    from harness.engines.torch.collectives import TorchSending

    class FaultySending(TorchSending):
        taken = TorchSending.taken | {"cross_device_op"}

        def __init__(self, request: Request) -> None:
            super().__init__(request)
            self._fault, self._steps = self.cell.cross_device_op, 0
            self._is_last = self.first == self.cell.workers - 1
            self._others = distributed.new_group(all_but_the_last(self.cell)) if self._fault == "apart" else None

        def step(self) -> Any:
            self._steps += 1
            if (self._fault == "kept" and self._steps > 3) or (self._fault == "absent" and self._is_last):
                return self._received
            if self._fault == "apart":
                self._received.copy_(self._sent)
                if not self._is_last:
                    distributed.all_reduce(self._received, group=self._others)
                return self._received
            super().step()
            if self._fault == "element" and self._is_last:
                self._received[-1] += 1
            return self._received

    return FaultySending(request)


class FaultyTorch(Torch):
    """PyTorch and what is wrong with it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), (*FAULTS, *SENDING_FAULTS))

    def sending(self, request: Request) -> Sending:
        return faulty_sending(request)

    def trainer(self, request: Request) -> Trainer:
        return faulty_trainer(request)


class ForgetfulTorch(Torch):
    """PyTorch, whose jobs come back with all but the optimizer's moments."""

    def trainer(self, request: Request) -> Trainer:
        import torch

        from harness.engines.torch.trainer import TorchTrainer

        class Forgetful(TorchTrainer):
            def _read(self, folder: Path) -> None:
                super()._read(folder)
                for kept in self._counted.optimizer.state.values():
                    for name, value in kept.items():
                        if name != "step":
                            kept[name] = torch.zeros_like(value)

        return Forgetful(request)
