"""The documented ways to train in several processes. One file a way, with one `LOOP`."""

from collections.abc import Mapping

from harness.engines.torch.loops.base import Averaging as Averaging
from harness.engines.torch.loops.base import AveragingKind as AveragingKind
from harness.registry import registered


def loops() -> Mapping[str, AveragingKind]:
    """The registered loops by name, without importing PyTorch."""
    return registered(__name__, "LOOP")
