"""Instruments under PyTorch: steps that lack one thing, and what a step holds, counted as its ops are dispatched."""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import distributed
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from harness.engines.torch.loops import Averaging
from harness.engines.torch.loops.base import bytes_of
from harness.engines.torch.loops.ddp_hook import COMPRESSIONS
from harness.engines.torch.optimizers import CountedOptimizer
from harness.record.explain import (
    BARRIER,
    EMPTY,
    FORWARD,
    FORWARD_BACKWARD,
    NO_REDUCTION,
    NO_UPDATE,
    REDUCTION,
)
from harness.trial.instruments import Holds
from harness.trial.same_work.instruments import BACKWARD, Step

COMMUNICATION, ALL_REDUCE = "c10d", "all-reduce"
"""The namespace of the ops by which processes exchange; and what its sums are called in a record."""


def step_without(name: str, averaging: Averaging, counted: CountedOptimizer) -> Step:
    """The step that lacks what the instrument of a name says; see `TakenApart`."""
    optimizer = counted.optimizer

    def own_gradients(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        with averaging.unsynchronised():
            loss = loss_of(averaging, x, y)
            loss.backward()
        return loss.detach()

    def no_reduction(x: Any, y: Any, wait: Callable[[], object] = lambda: None) -> Any:
        averaging.sends_buffers()
        loss = own_gradients(x, y)
        wait()
        optimizer.step()
        return loss

    if name == BARRIER:
        number = _beside(averaging).new_zeros(1)
        return lambda x, y: no_reduction(x, y, lambda: distributed.all_reduce(number))
    if name == EMPTY:
        return _called_around_nothing(averaging)
    if name == REDUCTION:
        return _sums_alone(averaging)
    steps: dict[str, Step] = {
        NO_REDUCTION: no_reduction,
        NO_UPDATE: functools.partial(_no_update, averaging, optimizer),
        FORWARD_BACKWARD: own_gradients,
        FORWARD: functools.partial(_forward, averaging),
    }
    return steps[name]


def loss_of(averaging: Averaging, x: Any, y: Any) -> Any:
    """The mean loss over this process's share of a batch."""
    return functional.cross_entropy(averaging.called(x), y)


def _beside(averaging: Averaging) -> Any:
    """A tensor of the device that is trained on, of which others are made there."""
    return next(averaging.module.parameters())


def _no_update(averaging: Averaging, optimizer: Any, x: Any, y: Any) -> Any:
    optimizer.zero_grad()
    loss = loss_of(averaging, x, y)
    loss.backward()
    averaging.after_backward()
    return loss.detach()


def _forward(averaging: Averaging, x: Any, y: Any) -> Any:
    with averaging.unsynchronised():
        return loss_of(averaging, x, y).detach()


def _called_around_nothing(averaging: Averaging) -> Step:
    """What is called with a batch, around a module that does nothing."""
    nothing = _beside(averaging).new_zeros(())
    averaging.module.forward = lambda _: nothing

    def step(x: Any, _: Any) -> Any:
        with averaging.unsynchronised():
            return averaging.called(x)

    return step


def _sums_alone(averaging: Averaging) -> Step:
    """The all-reduces of a step, of tensors that are as large as what travels, as many under way at a time as there."""
    dtype, like = getattr(torch, COMPRESSIONS[averaging.compression].dtype), _beside(averaging)
    sent, nothing = (
        [like.new_zeros(size // dtype.itemsize, dtype=dtype) for size in averaging.reductions()],
        like.new_zeros(()),
    )

    def step(_: Any, __: Any) -> Any:
        under_way = []
        for tensor in sent:
            work = distributed.all_reduce(tensor, async_op=averaging.overlaps)
            under_way += [work] if averaging.overlaps else []
        for work in under_way:
            work.wait()
        return nothing

    return step


def holds_of_step(step: Step, batch: tuple[Any, ...], averaging: Averaging) -> Holds:
    """What a step holds, which is run on `batch` for it. Every process must ask for the same."""
    weights = list(averaging.module.parameters())
    before = [weight._version for weight in weights]
    with _Dispatched() as found:
        step(*batch)
    changes = sum(weight._version != version for weight, version in zip(weights, before, strict=True))
    return Holds(
        found.work,
        Counter({ALL_REDUCE: found.sums} if found.sums else {}),
        changes,
        bytes_added_up=found.bytes_added_up,
        collectives=found.sums + found.sent_besides.total(),
        flops=found.flops,
        sent_besides=found.sent_besides,
    )


class _Dispatched(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is not there to be looked at
    """While entered, counts what is dispatched: autograd's ops and those of DDP's reducer, too."""

    def __init__(self) -> None:
        super().__init__()
        self.work: Counter[str] = Counter()
        self.flops = 0
        self.sums = self.bytes_added_up = 0
        self.sent_besides: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        op, name = func.overloadpacket, func.overloadpacket.__name__
        if func.namespace == COMMUNICATION:
            self._sent(name, args)
            return found
        backward = torch._C._current_graph_task_id() != -1
        if op in flop_registry or "backward" in name:
            self.work[f"{name}{BACKWARD}" if backward else name] += 1
        if op in flop_registry:
            self.flops += int(flop_registry[op](*args, **kwargs, out_val=found))
        return found

    def _sent(self, name: str, args: Any) -> None:
        if name.startswith("allreduce"):
            self.sums += 1
            self.bytes_added_up += bytes_of(args[0])
        else:
            self.sent_besides[name] += 1
