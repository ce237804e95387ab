"""Runs of every kind of work."""

import json
from pathlib import Path
from typing import Any

from harness.record import Run
from harness.record.checks import Checks
from harness.record.manifest import PlanRecord, RunManifest
from harness.record.trial import TrialRecord, rates
from harness.spec.work import Cell
from tests.synthetic import make_cell, make_run


def run_of(cells: list[Cell], tmp_path: Path, seed: int = 1) -> Run:
    """A run whose trials are those of trainings, but for what was worked on and how it is counted."""
    stand_ins = [make_cell("none", batch_size=2 ** (4 + number)) for number in range(len(cells))]
    manifest, trials = make_run(stand_ins, faults=False, seed=seed)
    of = {stand_in.cell_id: cell for stand_in, cell in zip(stand_ins, cells, strict=True)}
    plans = [
        PlanRecord.sealed(1, 1, [[[of[name].cell_id for name in group] for group in block] for block in plan.blocks])
        for plan in manifest.plans
    ]
    facts = {**manifest.facts, "machine.id": "one", "git.revision": "a" * 40}
    changed = manifest.model_copy(
        update={
            "cells": cells,
            "plans": plans,
            "base_cell_ids": [],
            "run_id": f"20261121T01234{seed}Z-work-a1b2",
            "machine": manifest.machine.model_copy(update={"facts": facts}),
            "left_out": [],
        }
    )
    manifest = RunManifest.model_validate_json(changed.model_dump_json())
    return Run(tmp_path, manifest, [_of(trial, of[trial.cell_id], manifest.run_id) for trial in trials], False, False)


def _of(trial: TrialRecord, cell: Cell, run_id: str) -> TrialRecord:
    values: dict[str, Any] = json.loads(trial.model_dump_json())
    for key in ("throughput_examples_per_s", "cpu_seconds_per_example", "cell"):
        values.pop(key)
    gate = cell.GATE
    if gate != "full":
        of_input = {"batches": True, "examples": True} if gate == "pipeline" else {}
        passed = Checks(gate=gate, loss_finite=True, reduction=True, late=True, **of_input)
        values["checks"] = json.loads(passed.model_dump_json())
        if gate == "instrument":
            values.update(status="unproved", reason=passed.unproved)
    assert trial.step_time_s is not None
    own = {"cell": cell.model_dump(), "cell_id": cell.cell_id, "run_id": run_id}
    return TrialRecord.model_validate_json(json.dumps({**values, **own, **rates(cell, trial.step_time_s, 0.01)}))
