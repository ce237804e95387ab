"""A made-up run of faults, for tests of whatever reads one."""

from collections.abc import Sequence
from typing import Any

from harness.record.fault_log import FaultLog
from harness.record.faults import (
    CheckpointCost,
    Detection,
    FaultRecord,
    FaultsPlan,
    Interruption,
    UpdateCounts,
    WeightCheck,
)
from harness.record.manifest import RunManifest
from harness.record.store import RunStore
from harness.run.kinds.faults.scenarios import plan_jobs
from harness.spec.faults import faults_from
from harness.spec.work import Cell
from tests.record.examples import manifest

PLANNED = plan_jobs(faults_from({"repeats": 2, "fault": ["kill_worker", "kill_ps"]}))
PLAN: FaultsPlan = PLANNED.faults
CELLS: dict[str, Cell] = {cell.strategy: cell for cell in PLANNED.cells}


def job(strategy: str, fault: str, every: int, repeat: int = 0, **changes: Any) -> FaultRecord:
    """A job that recovered, with the same times in every repeat but for a second a repeat."""
    cell = CELLS[strategy]
    values: dict[str, Any] = {
        "run_id": "r",
        "scenario": f"{strategy}/{fault}/{every}",
        "cell_id": cell.cell_id,
        "cell": cell,
        "fault": fault,
        "checkpoint_every": every,
        "repeat": repeat,
        "status": "recovered",
        "started_utc": "2026-11-21T01:24:00Z",
        "steps": 100,
        "target": "worker 1",
        "fault_step": 50,
        "detections": [
            Detection(by="process_end", who="worker 1", after_s=0.1),
            Detection(by="tensorflow", who="worker 0", after_s=0.2),
        ],
        "useful_step_after_s": 3.0 + repeat,
        "standstill_s": 3.0 + repeat,
        "steps_lost": 10 * repeat,
        "interruption": Interruption(detection_s=0.1, restart_s=2.0 + repeat, replay_s=0.9),
        "all_back_after_s": 2.5,
        "updates": UpdateCounts(scheduled=100, applied=100),
        "weights": WeightCheck(criterion="undisturbed_run", right=True, share=0.0, identical=True),
    }
    return FaultRecord(**{**values, **changes})


def undisturbed(strategy: str, with_s: list[float], without_s: list[float], repeat: int = 0) -> FaultRecord:
    """A job that nothing was done to, with the windows that checkpoints are priced by."""
    cost = CheckpointCost(steps_per_window=20, with_s=with_s, without_s=without_s, bytes=8_000_000)
    return job(
        strategy,
        "none",
        20,
        repeat,
        status="undisturbed",
        cost=cost,
        detections=[],
        interruption=None,
        useful_step_after_s=None,
        standstill_s=None,
    )


def example() -> list[FaultRecord]:
    """Two strategies: one that recovers, one that applied an update twice and has jobs that make no sense."""
    twice = {
        "updates": UpdateCounts(scheduled=100, applied=101, once=99, repeated=1, torn=1),
        "weights": WeightCheck(criterion="every_update_once", right=False, detail="of 100 updates: 1 applied twice"),
        "status": "wrong_weights",
        "interruption": None,
        "useful_step_after_s": 0.05,
        "standstill_s": 0.2,
    }
    nothing: dict[str, Any] = {
        "status": "unsupported",
        "reason": "mirrored has no parameter servers",
        "detections": [],
        "interruption": None,
        "useful_step_after_s": None,
        "standstill_s": None,
        "updates": None,
        "weights": None,
        "all_back_after_s": None,
    }
    return [
        *(job("mirrored", "kill_worker", 20, repeat) for repeat in range(2)),
        job("mirrored", "kill_worker", 0, status="lost_state", reason="all 50 steps were done again"),
        *(job("mirrored", "kill_ps", every, repeat, **nothing) for every in (0, 20) for repeat in range(2)),
        *(undisturbed("mirrored", [1.2, 1.2], [1.0, 1.0], repeat) for repeat in range(2)),
        job("parameter_server", "kill_worker", 20, **twice),
        job("parameter_server", "kill_worker", 20, 1),
    ]


def run_manifest(**changes: Any) -> RunManifest:
    """The manifest of the example."""
    values = {"sweep": PLANNED.sweep, "cells": PLANNED.cells, "plans": [PLANNED.plan], "faults": PLAN, **changes}
    return manifest(**values)


def write_example(results: Any, records: Sequence[FaultRecord] = ()) -> Any:
    """The example as a run's folder below `results`, or that run with `records` in their place."""
    with RunStore.create(results, run_manifest(status="finished")) as store, FaultLog(store.path) as log:
        for record in records or example():
            log.append(record)
    return store.path
