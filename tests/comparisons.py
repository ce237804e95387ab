"""Runs to compare, with known truth: two sweeps, and the two sides of an `ab`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.analysis.estimates.verdict import Margins
from harness.record import Run, RunManifest, RunStore, TrialRecord
from harness.record.manifest import ComparisonRecord, PlanRecord, SideRecord
from harness.record.validation import Effect, Floor, Rate, ValidationRecord
from harness.run.kinds.decision import AbSettings
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from tests.synthetic import Change, make_cell, make_run

FACTS: dict[str, Any] = {
    "machine.id": "0123456789ab",
    "cpu.model": "Synthetic CPU",
    "cpu.usable_cores": 2,
    "cpu.governor": "performance",
    "package.tensorflow": "2.21.0",
    "os.system": "Linux",
}
MIRRORED = make_cell("mirrored", 2)


def scaled(record: TrialRecord, wall: float = 1.0, cpu: float = 1.0) -> TrialRecord:
    """The trial, `wall` times as long and with `cpu` times the processor time; all figures agree."""
    if record.windows is None or record.step_time_s is None:
        return record
    windows = record.windows.model_copy(
        update={
            "seconds": [value * wall for value in record.windows.seconds],
            "cpu_seconds": [value * cpu for value in record.windows.cpu_seconds],
        }
    )
    throughput, cost = record.throughput_examples_per_s, record.cpu_seconds_per_example
    return record.model_copy(
        update={
            "windows": windows,
            "step_time_s": record.step_time_s * wall,
            "throughput_examples_per_s": None if throughput is None else throughput / wall,
            "cpu_seconds_per_example": None if cost is None else cost * cpu,
        }
    )


def as_run(
    manifest: RunManifest,
    trials: Sequence[TrialRecord],
    run_id: str,
    facts: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Run:
    """A run of that id in memory, on the machine that `facts` describe."""
    machine = manifest.machine.model_copy(update={"facts": {**FACTS, **(facts or {})}})
    renamed = manifest.model_copy(update={"run_id": run_id, "machine": machine, **changes})
    records = [trial.model_copy(update={"run_id": run_id}) for trial in trials]
    return Run(Path("results") / run_id, renamed, records, torn=False, live=False)


def sweep_run(
    run_id: str,
    cells: Sequence[Cell] | None = None,
    *,
    seed: int = 1,
    wall: float = 1.0,
    cpu: float = 1.0,
    facts: Mapping[str, Any] | None = None,
    change: Change | None = None,
    manifest: Mapping[str, Any] | None = None,
    **options: Any,
) -> Run:
    """A sweep whose every trial takes `wall` times as long, measured when the machine drifted little."""

    def alter(record: TrialRecord) -> TrialRecord | None:
        slower = scaled(record, wall, cpu)
        return change(slower) if change else slower

    values = {"blocks": 8, "drift": 0.002, "noise": 0.003, "faults": False, **options}
    made = make_run([make_cell(), MIRRORED] if cells is None else cells, seed=seed, change=alter, **values)
    return as_run(*made, run_id, facts, **(manifest or {}))


def pair_of_runs(wall: float = 1.0, cpu: float = 1.0, **options: Any) -> tuple[Run, Run]:
    """Run A, and run B whose trials take `wall` times as long."""
    return sweep_run("run-a", seed=1), sweep_run("run-b", seed=2, wall=wall, cpu=cpu, **options)


def ab_run(
    differences: Sequence[float | None],
    *,
    run_id: str = "ab-run",
    cpu: Sequence[float] | None = None,
    pilot: int | None = None,
    looks: Sequence[int] = (),
    cells: tuple[Cell, Cell] = (MIRRORED, MIRRORED),
    **comparison: Any,
) -> Run:
    """An `ab` run: block i's ln(X_b/X_a) is `differences[i]`, None a block without a trial.

    `cpu` are the log ratios of examples per CPU second. With `pilot` the blocks from there on are a second stage;
    with `looks` those up to the next look after the last block are planned.
    """
    manifest, [template] = make_run([MIRRORED], blocks=1, faults=False)
    trials = []
    for block, difference in enumerate(differences):
        if difference is None:
            continue
        effort = difference if cpu is None else cpu[block]
        drift = 1 + 0.2 * math.sin(block)
        for side, cell in zip("ab", cells, strict=True):
            b = side == "b"
            record = scaled(template, drift * (math.exp(-difference) if b else 1), math.exp(-effort) if b else 1)
            place = {"block": block, "group": f"b{block}", "side": side, "order": int(b)}
            trials.append(record.model_copy(update={"cell": cell, "cell_id": cell.cell_id, **place}))
    first = len(differences) if pilot is None else pilot
    plans = [_plan(1, 0, first)] + ([] if pilot is None else [_plan(2, first, len(differences) - first)])
    if looks:
        planned = [earlier for earlier in (0, *looks[:-1]) if earlier < len(differences)]
        record = AbSettings(Margins(), looks).planned()
        plans = [_plan(1, earlier, after - earlier) for earlier, after in zip(planned, looks, strict=False)]
        plans[0] = PlanRecord.sealed(1, 1, plans[0].blocks, looks=record)
    changes = {"cells": list(dict.fromkeys(cells)), "plans": plans, "comparison": _comparison(cells, comparison)}
    return as_run(manifest, trials, run_id, **changes)


def stored(run: Run, results: Path) -> Path:
    """The run as it would be on disk, below `results`."""
    with RunStore.create(results, run.manifest) as store:
        for trial in run.trials:
            store.append(trial)
    return store.path


def validation(paired: float = 0.012, unpaired: float | None = 0.05, **changes: Any) -> ValidationRecord:
    """What `validate` would have found on the machine of FACTS."""
    rate = Rate(count=1, of=60, low=0.0, high=0.09)
    effect = Effect(
        cell=MIRRORED,
        plant=None,
        verdicts={"equivalent": 59, "slower": 1},
        slower=rate,
        false_alarms=rate,
        equivalent=Rate(count=59, of=60, low=0.9, high=1.0),
        measured=0.0,
        blocks_median=6,
        blocks_most=12,
        seconds_median=60.0,
        seconds_most=120.0,
    )
    values: dict[str, Any] = {
        "run_id": "validation-run",
        "created_utc": "2026-11-21T00:00:00+00:00",
        "harness_version": "0.1.0",
        "complete": True,
        "quick": False,
        "machine_id": FACTS["machine.id"],
        "facts": FACTS,
        "delta": 0.01,
        "epsilon": 0.03,
        "windows": 10,
        "window_s": 0.1,
        "pilot_blocks": 6,
        "max_blocks": 12,
        "effects": [effect],
        "floors": [Floor(cell=MIRRORED, paired=paired, unpaired=unpaired)],
    }
    return ValidationRecord(**{**values, **changes})


def _plan(stage: int, first: int, blocks: int) -> PlanRecord:
    return PlanRecord.sealed(1, stage, [[["a", "b"]]] * blocks, first)  # type: ignore[arg-type]


def _comparison(cells: tuple[Cell, Cell], changes: Mapping[str, Any]) -> ComparisonRecord:
    sides = [
        SideRecord(name=name, label=f"side {name}", cell_id=cell.cell_id, sweep=Sweep())  # type: ignore[arg-type]
        for name, cell in zip("ab", cells, strict=True)
    ]
    values: dict[str, Any] = {
        "sides": sides,
        "delta": 0.01,
        "epsilon": 0.03,
        "margins_source": "the defaults",
        "half_width": 0.01,
        "max_blocks": 12,
    }
    return ComparisonRecord(**{**values, **changes})
