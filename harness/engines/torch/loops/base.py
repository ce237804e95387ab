"""What a loop must be able to do: a module whose gradients are the mean over all processes once backward is done."""

import contextlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.errors import Unsupported

PLAIN = "auto"
"""The cross-device op by which gradients travel as they are."""


class Averaging:
    """A way to average the gradients of `module`; this one does not, which is right where there is one process."""

    passes_to_settle: ClassVar[int] = 0
    """Passes after which gradients take the way that they take from then on."""

    takes_compression: ClassVar[bool] = False
    """Whether gradients can travel in fewer bits."""
    takes_buckets: ClassVar[bool] = True
    """Whether the bytes that are reduced together can be chosen."""
    overlaps: ClassVar[bool] = True
    """Whether an all-reduce begins before the one before it has ended."""
    packs: ClassVar[str] = "DDP's buckets, in the order in which gradients come"
    """Which gradients travel together."""

    def __init__(self, module: Any, bucket_bytes: int | None, compression: str = PLAIN) -> None:
        if compression != PLAIN and not self.takes_compression:
            raise Unsupported(f"cross_device_op: '{compression}' is a communication hook of DDP: give --loop ddp_hook")
        self.module = module
        self.bucket_bytes = bucket_bytes
        """Bytes that are reduced together; 0 is all of them, None PyTorch's own choice."""
        self.compression = compression
        """The cross-device op of that name."""
        self.called = self.wrapped()
        """What is called with a batch."""

    def wrapped(self) -> Any:
        """The module as it is called."""
        return self.module

    def after_backward(self) -> None:
        """What is done between backward and the optimizer's step."""

    def unsynchronised(self) -> AbstractContextManager[Any]:
        """While entered, a pass averages nothing."""
        return contextlib.nullcontext()

    @property
    def buffers(self) -> str:
        """What becomes of the module's untrained statistics before each pass; empty where each process has its own."""
        return ""

    def sends_buffers(self) -> None:
        """The next pass sends untrained statistics as one that averages does, though it be unsynchronised."""

    def reductions(self) -> list[int]:
        """The bytes of each all-reduce of a step."""
        return []

    def settle(self, loss: Callable[[Any], Any]) -> None:
        """Backward of `loss(what is called)` as often as it takes; weights and buffers are left as they are."""
        kept = [buffer.clone() for buffer in self.module.buffers()]
        for _ in range(self.passes_to_settle):
            loss(self.called).backward()
            self.module.zero_grad()
        for buffer, value in zip(self.module.buffers(), kept, strict=True):
            buffer.copy_(value)

    def averaged(self, loss: Callable[[Any], Any]) -> list[Any]:
        """The gradients of the module's parameters after backward of `loss(what is called)`, as the optimizer gets
        them."""
        self.settle(loss)
        loss(self.called).backward()
        self.after_backward()
        return [parameter.grad for parameter in self.module.parameters()]


def bytes_of(tensors: Sequence[Any]) -> int:
    """Of all of them together."""
    return sum(math.prod(tensor.shape) * tensor.element_size() for tensor in tensors)


@dataclass(frozen=True)
class AveragingKind:
    """A registered loop."""

    name: str
    summary: str
    build: type[Averaging]
