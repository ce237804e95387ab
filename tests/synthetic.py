"""Synthetic runs with known truth: realistic numbers, drift common to all who took turns, every status.

`make_run` gives what a sweep would have written. The truth behind a trial's step time is
`true_step_time(cell)`; the machine's drift multiplies all trials of a group alike, each trial adds its
own small deviation, each window its noise.
"""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, get_args

from harness.record.checks import Checks
from harness.record.cluster import ClusterRecord, MemberRecord
from harness.record.manifest import LeftOutRecord, Machine, PlanRecord, RunManifest
from harness.record.trial import (
    RATE_KEYS,
    Executed,
    PhaseName,
    Phases,
    Resources,
    TrialRecord,
    Windows,
    rates,
)
from harness.spec.cell import TrainingCell
from harness.spec.sweep import Sweep
from harness.spec.work import Cell

RUN_ID = "20261121T012345Z-default-a1b2"
OPS = ("auto", "nccl", "hierarchical_copy", "reduction_to_one_device")
NCCL_REASON = (
    "InvalidArgumentError: No OpKernel was registered to support Op 'NcclAllReduce' used by "
    '{{node NcclAllReduce}} with these attrs: [reduction="sum", T=DT_FLOAT]'
)
TPU_REASON = "no TPU: TPUClusterResolver('local') found no TPU system on this machine"
WRONG_REASON = "the reduction is wrong: 3 replicas sent 1, 2 and 4 and received 5 instead of 7"
WRONG_EVIDENCE = {
    "reduction": "replica 0 received 5.0 where 7.0 was expected; replica 2's value is missing from the sum",
    "update": "after one step a weight differs from the one-device reference by 3.1e-03 (allowed 1e-05)",
}
STACK = 'File "/app/<trial>/step.py", line 41 in run\n  File "threading.py", line 324 in wait\n'
Change = Callable[[TrialRecord], TrialRecord | None]


def make_cell(
    strategy: str = "none", replicas: int = 1, batch_size: int = 32, op: str = "auto", **changes: Any
) -> Cell:
    """A cell of the default sweep; `changes` are any other keys."""
    scope = changes.pop("batch_scope", "per_replica")
    workers = changes.get("workers", 1)
    values: dict[str, Any] = {
        "device": "virtual-cpu",
        "strategy": strategy,
        "replicas": replicas,
        "batch_size": batch_size,
        "batch_scope": scope,
        "cross_device_op": op,
        "model": "mnist_cnn",
        "data": "digits",
        "global_batch_size": batch_size if scope == "global" else batch_size * replicas * workers,
    }
    return TrainingCell(**{**values, **changes})


def default_cells(
    replicas: Sequence[int] = (1, 2, 3), batch_sizes: Sequence[int] = (32, 128), **changes: Any
) -> list[Cell]:
    """The matrix of the default sweep (27 cells), in its order."""
    cells = []
    for batch in batch_sizes:
        cells.append(make_cell("none", 1, batch, **changes))
        cells.append(make_cell("one_device", 1, batch, **changes))
        for strategy in ("mirrored", "central_storage", "tpu"):
            for n in replicas:
                ops = OPS if strategy == "mirrored" and n > 1 else ("auto",)
                cells += [make_cell(strategy, n, batch, op, **changes) for op in ops]
    return cells


def true_step_time(cell: Cell, physical: int = 2) -> float:
    """Seconds of one step: fixed cost, work that shares `physical` processors, and the reduction."""
    n = cell.replicas_in_sync
    work = 0.004 + 0.00012 * cell.replica_batch_size
    crowding = max(1.0, n / physical)
    overhead = {"none": 0.0, "one_device": 0.0001, "central_storage": 0.0006}.get(cell.strategy, 0.0004)
    reduction = {"auto": 0.0011, "reduction_to_one_device": 0.0009, "hierarchical_copy": 0.0010}
    across = reduction.get(cell.cross_device_op, 0.001) * (n - 1)
    return (work * crowding + overhead + across) * (1.06 if cell.loop == "fit" else 1.0)


def make_run(
    cells: Sequence[Cell] | None = None,
    *,
    blocks: int = 4,
    groups: int = 1,
    seed: int = 1,
    drift: float = 0.08,
    noise: float = 0.004,
    window_noise: float = 0.02,
    windows: int = 10,
    physical: int = 2,
    faults: bool = True,
    status: str = "finished",
    change: Change | None = None,
    **manifest_changes: Any,
) -> tuple[RunManifest, list[TrialRecord]]:
    """A manifest and its trials.

    `drift` is the standard deviation of the machine's speed between groups and `noise` that of a trial
    (both of the log). With `groups` > 1 each block is split, the no-strategy cells in every group.
    `faults` plants the failures of a real CPU machine (see `_fault`). `change` may alter each record, or
    drop it by returning None.
    """
    chance = random.Random(seed)
    chosen = list(default_cells() if cells is None else cells)
    plan = [_split(chosen, groups, chance) for _ in range(blocks)]
    trials = []
    for block, parts in enumerate(plan):
        for part_index, part in enumerate(parts):
            speed = math.exp(chance.gauss(0.0, drift))
            group = f"b{block}g{part_index}"
            for order, cell in enumerate(part):
                own = math.exp(chance.gauss(0.0, noise))
                step = true_step_time(cell, physical) * speed * own
                record = _record(cell, block, group, order, step, windows, window_noise, physical, chance)
                record = _fault(record, block) if faults else record
                changed = change(record) if change else record
                if changed is not None:
                    trials.append(changed)
    manifest = _manifest(chosen, plan, blocks, windows, status, seed)
    return manifest.model_copy(update=manifest_changes), trials


def failed(record: TrialRecord, status: str, reason: str, phase: str = "build", **more: Any) -> TrialRecord:
    """The record of a trial that ended otherwise, in `phase`: nothing later is left in it."""
    names = get_args(PhaseName)
    reached = names[: names.index(phase) + 1]
    phases = record.phases.model_dump(include={f"{name}_s" for name in reached})
    values = record.model_dump(exclude={"cell"})
    values.update(
        cell=record.cell,
        status=status,
        reason=reason,
        phase=phase,
        windows=None,
        step_time_s=None,
        **dict.fromkeys(itertools.chain(*RATE_KEYS.values())),
        checks=Checks(),
        phases=phases,
    )
    if phase in ("start", "build", "first_step"):
        values["executed"] = Executed()
    return TrialRecord.model_validate({**values, **more})


def unproved(record: TrialRecord, share: float = 0.5) -> TrialRecord:
    """The record of a trial in which a missing replica would have been `share` of what is allowed."""
    checks = record.checks.model_copy(update={"sight": {"missing": share}, "late": True, "loss": True})
    return record.model_copy(update={"status": "unproved", "reason": checks.unproved, "checks": checks})


def _fault(record: TrialRecord, block: int) -> TrialRecord:
    cell = record.cell
    n = cell.replicas
    if cell.strategy == "tpu":
        return failed(record, "unsupported", TPU_REASON, phase="build")
    if cell.cross_device_op == "nccl":
        return failed(record, "unsupported", NCCL_REASON, phase="first_step")
    if cell.cross_device_op == "hierarchical_copy" and n == 3:
        checks = Checks(reduction=False, update=False, detail=WRONG_EVIDENCE)
        return failed(record, "wrong_result", WRONG_REASON, phase="check", checks=checks)
    if cell.strategy == "central_storage" and n == 3 and cell.batch_size == 128:
        return failed(record, "timeout", "no progress for 120 s", phase="warmup", evidence=STACK)
    if cell.strategy == "central_storage" and n == 3 and block == 1:
        return failed(record, "crashed", "the process died of signal 11", phase="steady", evidence="Segmentation fault")
    if cell.strategy == "mirrored" and n == 3 and cell.cross_device_op == "auto":
        return warming(record)
    return record


def warming(record: TrialRecord, share: float = 0.3) -> TrialRecord:
    """The trial with measured windows that become shorter by about `share`, and the same sum."""
    assert record.windows is not None
    first, seconds = record.windows.measured_from, record.windows.seconds
    measured = [time * (1 - share * number / (len(seconds) - first)) for number, time in enumerate(seconds[first:])]
    same = sum(seconds[first:]) / sum(measured)
    changed = [*seconds[:first], *(time * same for time in measured)]
    return record.model_copy(update={"windows": record.windows.model_copy(update={"seconds": changed})})


def paging(record: TrialRecord, share: float = 0.4, page_faults: int = 5000) -> TrialRecord:
    """The trial with so many page faults a step, and this share of its processor time in the kernel."""
    windows = record.windows
    assert windows is not None
    counted = {
        "system_seconds": [share * used for used in windows.cpu_seconds],
        "page_faults": [page_faults * windows.steps_per_window] * len(windows.seconds),
    }
    return record.model_copy(update={"windows": windows.model_copy(update=counted)})


def _split(cells: list[Cell], groups: int, chance: random.Random) -> list[list[Cell]]:
    bases = [cell for cell in cells if cell.strategy == "none"]
    rest = [cell for cell in cells if cell.strategy != "none"]
    chance.shuffle(rest)
    parts = []
    for index in range(groups):
        part = [*bases, *rest[index::groups]]
        chance.shuffle(part)
        parts.append(part)
    return parts


def _record(
    cell: Cell,
    block: int,
    group: str,
    order: int,
    step: float,
    windows: int,
    window_noise: float,
    physical: int,
    chance: random.Random,
) -> TrialRecord:
    steps = max(1, round(0.1 / step))
    warm = [steps * step * (1 + 0.3 * math.exp(-index / 1.5)) for index in range(5)]
    noisy = [math.exp(chance.gauss(0.0, window_noise)) for _ in range(windows)]
    # the measured windows' mean is the trial's step time exactly, so that its truth is known
    scale = steps * step / (sum(noisy) / windows)
    seconds = warm + [scale * value for value in noisy]
    n = cell.replicas_in_sync
    return TrialRecord(
        run_id=RUN_ID,
        cell_id=cell.cell_id,
        cell=cell,
        block=block,
        group=group,
        order=order,
        status="ok",
        started_utc="2026-11-21T01:23:45Z",
        phases=_phases(n, warm, seconds[5:], chance),
        windows=_windows(steps, seconds, min(n, physical)),
        step_time_s=step,
        **rates(cell, step, step * min(n, physical)),
        peak_memory_bytes=(420 + 35 * n) * 2**20,
        final_loss=0.4,
        checks=PASSED,
        executed=_executed(cell, reduces=cell.strategy == "mirrored" and n > 1),
        resources=_resources(n, physical, getattr(cell, "intra_op_threads", 0) or 1),
    )


PASSED = Checks(
    reduction=True, update=True, replicas_agree=True, updates_applied=100, updates_scheduled=100, loss_finite=True
)


def _windows(steps: int, seconds: list[float], processors: int) -> Windows:
    return Windows(
        steps_per_window=steps,
        seconds=seconds,
        cpu_seconds=[value * processors for value in seconds],
        rounds=list(range(len(seconds))),
        measured_from=5,
        sync_seconds=0.0002,
        waiting_cpu_seconds=0.03,
    )


def _phases(n: int, warm: list[float], measured: list[float], chance: random.Random) -> Phases:
    return Phases(
        start_s=0.02 + chance.random() / 100,
        build_s=0.22 + 0.03 * n,
        first_step_s=0.35 + 0.08 * n,
        check_s=0.15 + 0.05 * n,
        warmup_s=sum(warm),
        steady_s=sum(measured),
        waiting_s=8.0,
        exit_s=0.004,
    )


def _resources(n: int, physical: int, threads: int) -> Resources:
    return Resources(
        logical_devices=[f"/device:CPU:{index}" for index in range(n)],
        physical_devices=physical,
        shared=n > physical,
        intra_op_threads=threads,
        inter_op_threads=max(2, 2 * n),
    )


def _executed(cell: Cell, reduces: bool) -> Executed:
    if not reduces:
        return Executed(operations={}, packs=0, fingerprint=f"plain-{cell.strategy}-{cell.replicas}")
    if cell.cross_device_op == "auto":
        return Executed(
            operations={"CollectiveReduceV2[ring]": 1}, packs=1, pack_bytes=[1_709_352], fingerprint="ring-1"
        )
    hierarchical = cell.cross_device_op == "hierarchical_copy"
    differs = "hierarchical_copy ran as reduction to one device" if hierarchical else None
    return Executed(
        operations={"AddN": 10},
        packs=10,
        pack_bytes=[1_605_632, 73_728, 1_280],
        fingerprint="hierarchical-3" if hierarchical and cell.replicas == 3 else "add-n",
        differs_from_request=differs if cell.replicas == 2 else None,
    )


def _manifest(
    cells: list[Cell], plan: list[list[list[Cell]]], blocks: int, windows: int, status: str, seed: int
) -> RunManifest:
    ids = [[[cell.cell_id for cell in part] for part in parts] for parts in plan]
    asked = {cell.cell_id for cell in cells}
    bases = {Cell.model_validate(cell.base.model_dump()).cell_id for cell in cells} & asked
    return RunManifest(
        run_id=RUN_ID,
        created_utc="2026-11-21T01:23:45Z",
        finished_utc="2026-11-21T01:27:59Z" if status == "finished" else None,
        status=status,  # type: ignore[arg-type]
        command=["python", "-m", "harness", "sweep"],
        harness_version="0.1.0",
        sweep=Sweep(
            trials=max(1, blocks), windows=max(5, windows), max_warmup=5, seed=seed, max_trials=max(20, blocks)
        ),
        cells=cells,
        base_cell_ids=sorted(bases)[:1],
        left_out=[
            LeftOutRecord(combination="one_device × 2 replicas", reason="strategy 'one_device' runs on 1 replica"),
            LeftOutRecord(
                combination="mirrored × 1 replica with nccl", reason="one replica has nothing to reduce across devices"
            ),
        ],
        plans=[PlanRecord.sealed(seed, 1, ids)] if blocks else [],
        machine=Machine(
            facts={
                "cpu_model": "Synthetic CPU <2.0 GHz> & friends",
                "cpu.usable_cores": 2,
                "memory_bytes": 8 * 2**30,
                "python": "3.11.9",
                "tensorflow": "2.21.0",
                "governor": None,
                "load_1min": 0.12,
            },
            warnings=["the frequency governor is 'powersave': timings vary more than they need to"],
        ),
    )


def computing(trial: TrialRecord, *pass_s: float) -> TrialRecord:
    """Workers with the same windows, of which each computes alone for so long."""
    assert trial.windows is not None
    windows = trial.windows.model_copy(update={"workers": [trial.windows.seconds] * len(pass_s)})
    members = [
        MemberRecord(name=f"worker {w}", address="a:1", compute_s=[seconds * (1 + 0.001 * trial.block)] * 5)
        for w, seconds in enumerate(pass_s)
    ]
    return trial.model_copy(update={"windows": windows, "cluster": ClusterRecord(launcher="local", members=members)})
