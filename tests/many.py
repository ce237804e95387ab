"""Runs of any size on disk, for tests of scale and for `benchmarks/goals/report_scale.py`.

Every trial is one of `tests.synthetic` with numbers of its own: what varies from trial to trial in a real run varies
here, with as many digits. Lines are written as they are made, so that a run of 100,000 trials needs no memory.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness.record.manifest import PlanRecord, RunManifest
from harness.spec.work import Cell
from tests.synthetic import default_cells, make_run, true_step_time

FEW_CELLS = 22
WINDOWS = 60
WARM = 5
"""Windows of warm-up that `tests.synthetic` puts before the measured ones."""
_IN_A_GROUP = 48
"""Trials alive together; a matrix with more cells is split, as a sweep splits what does not fit memory."""
_START = np.datetime64("2026-11-21T01:23:45")

Record = dict[str, Any]
Chance = np.random.Generator


def matrix(count: int = FEW_CELLS) -> list[Cell]:
    """`count` cells, the base case of each batch size among them: 22 of two batch sizes, or many up to 8 replicas."""
    if count <= FEW_CELLS:
        return default_cells((1, 2), (32, 128))[:count]
    cells = default_cells(range(1, 9), range(8, 8 * (count // 40 + 3), 8))
    return cells[:count]


def write_run(results: Path, trials: int, cells: int = FEW_CELLS, windows: int = WINDOWS, seed: int = 1) -> Path:
    """Write a finished run of exactly `trials` trials over `cells` cells; returns its folder."""
    chosen = matrix(cells)
    manifest, examples = make_run(chosen, blocks=2, windows=windows)
    templates: dict[tuple[str, int], Record] = {
        (record.cell_id, record.block): record.model_dump(mode="json") for record in examples
    }
    chance = np.random.default_rng(seed)
    plan = _plan(chosen, trials, chance)
    folder = results / manifest.run_id
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(_manifest(manifest, plan).model_dump_json(indent=2), encoding="utf-8")
    with (folder / "trials.jsonl").open("w", encoding="utf-8") as stream:
        for record in _records(plan, templates, chance):
            stream.write(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n")
    return folder


def _plan(cells: list[Cell], trials: int, chance: Chance) -> list[list[list[Cell]]]:
    """Blocks of groups with the base cases in every group, cut off after `trials`."""
    bases = [cell for cell in cells if cell.strategy == "none"]
    rest = [cell for cell in cells if cell.strategy != "none"]
    groups = max(1, math.ceil(len(rest) / _IN_A_GROUP))
    plan: list[list[list[Cell]]] = []
    left = trials
    while left > 0:
        order = [rest[index] for index in chance.permutation(len(rest))]
        block = []
        for number in range(groups):
            part = [*bases, *order[number::groups]]
            part = [part[index] for index in chance.permutation(len(part))][:left]
            left -= len(part)
            block += [part] if part else []
        plan.append(block)
    return plan


def _manifest(manifest: RunManifest, plan: list[list[list[Cell]]]) -> RunManifest:
    blocks = [[[cell.cell_id for cell in group] for group in block] for block in plan]
    return manifest.model_copy(update={"plans": [PlanRecord.sealed(1, 1, blocks)]})


def _records(
    plan: list[list[list[Cell]]], templates: dict[tuple[str, int], Record], chance: Chance
) -> Iterator[Record]:
    number = 0
    for block, groups in enumerate(plan):
        for part, group in enumerate(groups):
            speed = math.exp(chance.normal(0.0, 0.08))
            for order, cell in enumerate(group):
                place = {"block": block, "group": f"b{block}g{part}", "order": order}
                started = str(_START + np.timedelta64(4 * number, "s")) + ".353+00:00"
                yield (
                    _varied(templates[cell.cell_id, block % 2], cell, speed, chance) | place | {"started_utc": started}
                )
                number += 1


def _varied(template: Record, cell: Cell, speed: float, chance: Chance) -> Record:
    """The template with times of its own; a trial that was not measured varies in its phases only."""
    scales = chance.normal(1.0, 0.05, len(template["phases"]))
    record = template | {
        "phases": {
            name: None if value is None else value * abs(float(scale))
            for (name, value), scale in zip(template["phases"].items(), scales, strict=True)
        }
    }
    windows = template["windows"]
    if template["status"] != "ok" or windows is None:
        return record
    step = true_step_time(cell) * speed * math.exp(chance.normal(0.0, 0.004))
    steps = max(1, round(0.1 / step))
    count = len(windows["seconds"]) - WARM
    noise = np.exp(chance.normal(0.0, 0.02, count))
    warm = 1 + 0.3 * np.exp(-np.arange(WARM) / 1.5)
    seconds = steps * step * np.concatenate([warm, noise / noise.mean()])
    busy = min(cell.replicas_in_sync, 2) * seconds * np.exp(chance.normal(0.0, 0.01, len(seconds)))
    return record | {
        "windows": windows | {"steps_per_window": steps, "seconds": seconds.tolist(), "cpu_seconds": busy.tolist()},
        "step_time_s": step,
        "throughput_examples_per_s": cell.global_batch_size / step,
        "cpu_seconds_per_example": float(busy[WARM:].sum() / (count * steps * cell.global_batch_size)),
        "peak_memory_bytes": template["peak_memory_bytes"] + int(chance.integers(0, 2**20)) * 4,
        "final_loss": float(chance.normal(0.4, 0.01)),
    }
