"""`DistributedDataParallel` with the communication hooks that PyTorch's documentation begins with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.engines.torch.loops.base import PLAIN, AveragingKind
from harness.engines.torch.loops.ddp import Ddp


class Compression(NamedTuple):
    """How gradients travel: the hook of `default_hooks`, the type, and the arithmetic that it makes of the update."""

    hook: str
    dtype: str
    arithmetic: str
    shrinks: int
    """How many times fewer bytes there are than of float32."""


COMPRESSIONS: Mapping[str, Compression] = MappingProxyType(
    {
        PLAIN: Compression("allreduce_hook", "float32", "float32", 1),
        "fp16_compress": Compression("fp16_compress_hook", "float16", "mixed_float16", 2),
    }
)
"""By cross-device op. `bf16_compress_hook` asks for NCCL."""


class DdpHook(Ddp):
    """Python is called for each bucket, and says how it is averaged."""

    takes_compression = True

    def wrapped(self) -> Any:
        """Each hook divides by the number of processes, then adds up."""
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        found = super().wrapped()
        found.register_comm_hook(state=None, hook=getattr(default_hooks, COMPRESSIONS[self.compression].hook))
        return found

    def reductions(self) -> list[int]:
        """The buckets, as they travel."""
        return [size // COMPRESSIONS[self.compression].shrinks for size in super().reductions()]


LOOP = AveragingKind(
    "ddp_hook", "DistributedDataParallel with a communication hook: allreduce_hook, or one that compresses", DdpHook
)
