"""Valid records and manifests, for tests of whatever reads or writes them."""

from typing import Any

from harness.record import Checks, Executed, Machine, Phases, PlanRecord, Resources, RunManifest, TrialRecord, Windows
from harness.spec import Cell, Sweep, TrainingCell

RUN_ID = "20261121T012345Z-default-a1b2"


def cell(**changes: Any) -> Cell:
    """A two-replica Mirrored cell."""
    values: dict[str, Any] = {
        "device": "virtual-cpu",
        "strategy": "mirrored",
        "replicas": 2,
        "batch_size": 32,
        "batch_scope": "per_replica",
        "global_batch_size": 64,
        "cross_device_op": "auto",
        "model": "mnist_cnn",
        "data": "digits",
    }
    return TrainingCell(**(values | changes))


def manifest(run_id: str = RUN_ID, **changes: Any) -> RunManifest:
    """A run of one cell in two blocks."""
    only = cell()
    values: dict[str, Any] = {
        "run_id": run_id,
        "created_utc": "2026-11-21T01:23:45Z",
        "command": ["harness", "sweep"],
        "harness_version": "0.1.0",
        "sweep": Sweep(name="default"),
        "cells": [only],
        "plans": [PlanRecord.sealed(1, 1, [[[only.cell_id]], [[only.cell_id]]])],
        "machine": Machine(facts={"cpu.model": "a processor", "cpu.usable_cores": 2, "cpu.smt": None}, warnings=["w"]),
    }
    return RunManifest(**(values | changes))


def trial(block: int = 0, run_id: str = RUN_ID, **changes: Any) -> TrialRecord:
    """A trial that passed its gate and was measured over `windows` windows."""
    only = cell()
    count = changes.pop("windows_count", 12)
    values: dict[str, Any] = {
        "run_id": run_id,
        "cell_id": only.cell_id,
        "cell": only,
        "block": block,
        "group": f"{block}.0",
        "order": 0,
        "status": "ok",
        "started_utc": "2026-11-21T01:24:00Z",
        "phases": Phases(start_s=0.02, build_s=0.3, first_step_s=0.5, steady_s=1.2),
        "windows": Windows(
            steps_per_window=10,
            seconds=[0.1 + i / 977 for i in range(count)],
            cpu_seconds=[0.2] * count,
            rounds=list(range(count)),
            measured_from=2,
            steady=True,
            sync_seconds=0.0004,
        ),
        "step_time_s": 0.0107,
        "throughput_examples_per_s": 5981.3,
        "final_loss": 0.31,
        "checks": Checks(
            reduction=True,
            update=True,
            replicas_agree=True,
            updates_applied=120,
            updates_scheduled=120,
            loss_finite=True,
            sight={"missing": 400.0},
            late=True,
            loss=True,
        ),
        "executed": Executed(operations={"CollectiveReduceV2[RING]": 2}, packs=1, fingerprint="f" * 12),
        "resources": Resources(logical_devices=["/cpu:0", "/cpu:1"], shared=True),
    }
    return TrialRecord(**(values | changes))


def failed_trial(block: int = 0, run_id: str = RUN_ID, **changes: Any) -> TrialRecord:
    """A trial that crashed while it was built."""
    nothing = {
        "windows": None,
        "step_time_s": None,
        "throughput_examples_per_s": None,
        "final_loss": None,
        "checks": Checks(),
    }
    return trial(block, run_id, **(nothing | {"status": "crashed", "phase": "build", "reason": "signal 11"} | changes))
