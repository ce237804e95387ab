"""Runs of collectives."""

from typing import Any

from harness.spec.collective import CollectiveCell
from harness.spec.work import Cell

KEYS: dict[str, Any] = {"device": "virtual-cpu", "strategy": "mirrored"}
RING = CollectiveCell(collective="all_reduce", size=2**20, replicas=2, **KEYS)
ON_ONE = RING.model_copy(update={"cross_device_op": "reduction_to_one_device"})
BETWEEN = RING.model_copy(update={"strategy": "multi_worker_mirrored"})


def in_three_sizes(*cells: CollectiveCell) -> list[Cell]:
    """Each in its own size, twice that and four times."""
    return list(dict.fromkeys(of.model_copy(update={"size": of.size * many}) for of in cells for many in (1, 2, 4)))
