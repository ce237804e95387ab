"""PyTorch: data parallelism over processes, by DistributedDataParallel and by all-reduces of one's own.

Nothing here imports PyTorch before a trial's process asks for it.
"""

from harness.engines.torch.engine import ENGINE as ENGINE
