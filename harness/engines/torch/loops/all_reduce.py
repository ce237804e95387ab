"""An all-reduce of every gradient once backward is done, as PyTorch's tutorial on distributed applications has it."""

from typing import Any

from harness.engines.torch.loops.base import Averaging, AveragingKind, bytes_of
from harness.errors import Unsupported


class AllReduces(Averaging):
    """`average_gradients` of the tutorial: a tensor at a time, each waited for."""

    takes_buckets = False
    overlaps = False
    packs = "each gradient by itself"

    def wrapped(self) -> Any:
        """The module itself."""
        if self.bucket_bytes is not None:
            raise Unsupported("bytes_per_pack: loop 'all_reduce' sends a tensor at a time; give --loop ddp")
        return super().wrapped()

    def after_backward(self) -> None:
        """The sum over all processes, divided by their number."""
        from torch import distributed

        count = float(distributed.get_world_size())
        for parameter in self.module.parameters():
            distributed.all_reduce(parameter.grad)
            parameter.grad /= count

    def reductions(self) -> list[int]:
        """One a tensor."""
        return [bytes_of([parameter]) for parameter in self.module.parameters()]


LOOP = AveragingKind(
    "all_reduce", "an all-reduce of each gradient after backward, as a tutorial of PyTorch's", AllReduces
)
