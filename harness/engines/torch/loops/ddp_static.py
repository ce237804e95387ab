"""`DistributedDataParallel` that is told that its graph never changes."""

from harness.engines.torch.loops.base import AveragingKind
from harness.engines.torch.loops.ddp import Ddp


class DdpStatic(Ddp):
    """With `static_graph`: DDP learns in the first pass what comes in which order, and looks no more."""

    static_graph = True


LOOP = AveragingKind("ddp_static", "DistributedDataParallel with static_graph", DdpStatic)
