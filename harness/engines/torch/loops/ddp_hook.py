"""`DistributedDataParallel` with the communication hook that PyTorch's documentation begins with."""

from typing import Any

from harness.engines.torch.loops.base import AveragingKind
from harness.engines.torch.loops.ddp import Ddp


class DdpHook(Ddp):
    """Python is called for each bucket, and says how it is averaged."""

    def wrapped(self) -> Any:
        """`allreduce_hook` divides by the number of processes, then adds up."""
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

        found = super().wrapped()
        found.register_comm_hook(state=None, hook=allreduce_hook)
        return found


LOOP = AveragingKind("ddp_hook", "DistributedDataParallel with the communication hook allreduce_hook", DdpHook)
