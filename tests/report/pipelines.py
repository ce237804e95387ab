"""Runs of input pipelines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.record import Run
from harness.record.checks import Checks
from harness.record.trial import TrialRecord
from harness.spec.pipeline import PipelineCell
from harness.spec.work import Cell
from tests.report.quantities import run_of

FAST = PipelineCell(device="virtual-cpu", model="mnist_cnn", data="digits", batch_size=64)
SLOW = FAST.model_copy(update={"cache": "none"})
EQUAL = FAST.model_copy(update={"cache": "none", "parallel_calls": 1})
DECODED = SLOW.cut_behind("decode")
RATES: dict[Cell, float] = {FAST.appetite: 1000, FAST: 2300, SLOW: 500, EQUAL: 1000, DECODED: 600}
"""Examples a second."""
CPU_S = 0.002
"""Processor seconds of an example of any pipeline."""


def at_its_rate(trial: TrialRecord, rates: dict[Cell, float]) -> TrialRecord:
    """The record with the rate of its cell, but for what trials scatter by, and the gate of its work."""
    cell = trial.cell
    assert trial.step_time_s is not None
    scatter = trial.step_time_s % 1e-4  # less than 1 % of a step, another in each trial
    step = cell.work.amount / rates[cell] + scatter
    values: dict[str, Any] = {"step_time_s": step, "throughput_examples_per_s": cell.work.amount / step}
    if isinstance(cell, PipelineCell) and cell.competes:
        checks = Checks(gate="pipeline", batches=True, examples=True, order=True, late=True)
        return trial.model_copy(update={**values, "checks": checks, "cpu_seconds_per_example": CPU_S})
    checks = Checks(gate="instrument", update=True)
    return trial.model_copy(update={**values, "checks": checks, "status": "unproved", "reason": checks.unproved})


def unproved(run: Run, *cells: Cell) -> Run:
    """The same run with examples of these inputs that differ from pass to pass."""
    other = "other examples in each pass"
    checks = Checks(gate="pipeline", batches=True, detail=dict.fromkeys(("examples", "order", "late"), other))
    values = {"checks": checks, "status": "unproved", "reason": checks.unproved}
    trials = [trial.model_copy(update=values) if trial.cell in cells else trial for trial in run.trials]
    return replace(run, trials=trials)


def run_at(rates: dict[Cell, float], tmp_path: Path) -> Run:
    """A run of these cells at these rates."""
    made = run_of(list(rates), tmp_path)
    made.trials[:] = [at_its_rate(trial, rates) for trial in made.trials]
    return made
