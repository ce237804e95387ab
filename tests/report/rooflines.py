"""Runs on a machine whose limits are known."""

from typing import Any

from harness.record.limits import LimitsRecord
from harness.record.manifest import DeviceRecord, RunManifest
from harness.record.trial import TrialRecord
from tests.limits import limit, limits
from tests.synthetic import make_cell, make_run

FLOPS, BYTES = 4_000_000_000, 100_000_000
"""Of a step: 40 FLOP for each byte."""


def known(**changes: Any) -> LimitsRecord:
    """One thread computes 64 GFLOP/s and moves 13 GB/s, all eight 400 GFLOP/s and 60 GB/s."""
    memory = {"quantity": "memory", "type": "float64", "sizes": [2**24] * 3}
    every = [limit(threads=8, rates=[4e11] * 3), limit(threads=8, rates=[6e10] * 3, **memory)]
    return limits(limits=[limit(), limit(**memory, rates=[12e9, 13e9, 12.5e9]), *every], **changes)


def counted(trial: TrialRecord, physical: int = 8, **work: Any) -> TrialRecord:
    executed = trial.executed.model_copy(update={"flops_per_step": FLOPS, "bytes_per_step": BYTES, **work})
    resources = trial.resources.model_copy(update={"physical_devices": physical, "intra_op_threads": 1})
    return trial.model_copy(update={"executed": executed, "resources": resources})


def run(
    device: str = "virtual-cpu", devices: dict[str, DeviceRecord] | None = None, **changes: Any
) -> tuple[RunManifest, list[TrialRecord]]:
    shapes = (("none", 1), ("mirrored", 2), ("mirrored", 8))
    made: tuple[RunManifest, list[TrialRecord]] = make_run(
        [make_cell(*of, device=device) for of in shapes],
        faults=False,
        change=lambda trial: counted(trial, **changes),
        devices=devices,
    )
    return made
