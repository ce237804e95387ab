"""Models to train. One file a model, with one `WORKLOAD`; `keras:NAME` of keras.applications; or a user's own."""

from collections.abc import Mapping

from harness.engines.tensorflow.workloads.applications import PREFIX, application, unknown
from harness.engines.tensorflow.workloads.base import Workload
from harness.engines.tensorflow.workloads.loss import check_targets, loss_of
from harness.engines.tensorflow.workloads.optimizers import OPTIMIZERS, optimizer_of
from harness.engines.tensorflow.workloads.own import own_workload
from harness.engines.tensorflow.workloads.shapes import shapes_of
from harness.errors import UsageError, not_one_of
from harness.registry import registered

__all__ = [
    "OPTIMIZERS",
    "Workload",
    "check_targets",
    "load_workload",
    "loss_of",
    "optimizer_of",
    "shapes_of",
    "unknown",
    "workloads",
]


def workloads() -> Mapping[str, Workload]:
    """The registered models by name, without importing TensorFlow."""
    return registered(__name__, "WORKLOAD")


def load_workload(name: str) -> Workload:
    """The model called `name`, `keras:NAME`, or a user's own at `package.module:function` (which imports that module).

    Raises UsageError, one line that names the key `model`, when there is no such thing.
    """
    known = workloads()
    if name in known:
        return known[name]
    if fault := unknown(name):
        raise UsageError(fault)
    if name.startswith(PREFIX):
        return application(name)
    if ":" in name:
        return own_workload(name)
    raise not_one_of("model", name, [*known, f"{PREFIX}NAME", "package.module:function"])
