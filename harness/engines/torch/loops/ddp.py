"""`DistributedDataParallel`: gradients are averaged a bucket at a time, while backward goes on."""

from contextlib import AbstractContextManager
from typing import Any, ClassVar

from harness.engines.torch.loops.base import Averaging, AveragingKind, bytes_of

MIB = 2**20


class Ddp(Averaging):
    """The wrapper, with its own defaults but for the size of a bucket where the cell asks for one."""

    static_graph: ClassVar[bool] = False
    """Whether DDP is told that every pass uses the same parameters in the same order."""
    passes_to_settle = 2
    """DDP begins with few buckets and cuts them anew, in the order in which gradients came, as its third pass begins:
    what is proved and shown must be what is timed."""

    def wrapped(self) -> Any:
        """Broadcasts the first process's weights, and reduces as the gradients of a bucket are there."""
        from torch.nn.parallel import DistributedDataParallel

        if self.bucket_bytes is None:
            return DistributedDataParallel(self.module, static_graph=self.static_graph)
        whole = bytes_of(list(self.module.parameters()))
        size = (self.bucket_bytes or whole + 1) / MIB
        return DistributedDataParallel(self.module, bucket_cap_mb=size, static_graph=self.static_graph)

    def unsynchronised(self) -> AbstractContextManager[Any]:
        """As gradients are accumulated over several batches."""
        found: AbstractContextManager[Any] = self.called.no_sync()
        return found

    @property
    def buffers(self) -> str:
        """DDP's own choice (`forward_sync_buffers`), where there are any."""
        sent = self.called.will_sync_module_buffers()
        return "the first process's are sent to all before each forward pass" if sent else ""

    def sends_buffers(self) -> None:
        """DDP leaves that out once a pass was unsynchronised."""
        self.called.require_forward_param_sync = True

    def reductions(self) -> list[int]:
        """The buckets as DDP itself tells them."""
        told = self.called._get_ddp_logging_data()
        sizes = told.get("rebuilt_bucket_sizes") or told.get("bucket_sizes") or ""
        return [int(size) for size in sizes.split(",") if size.strip()]


LOOP = AveragingKind("ddp", "DistributedDataParallel: buckets of gradients are averaged while backward goes on", Ddp)
