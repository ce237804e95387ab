"""The suite of `pytest benchmarks/`: a spec's cells as benchmarks, and what was measured of each."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from harness.analysis import CellSummary, Interval, Problem, Scaling, summarise
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.report.words.names import names_of
from harness.report.words.text import OWN_INTERVAL
from harness.run.request import asked_matrix
from harness.spec import Cell, Sweep, load_sweep, sweep_from
from harness.spec.sweep import PROVING


@functools.cache
def read_spec(path: Path) -> tuple[Sweep, Mapping[str, Cell]]:
    """The sweep of a spec, and its cells by name; UsageError when it is not valid.

    Cells that a sweep would only add as base cases are not among them.
    """
    sweep = sweep_from(load_sweep(path), str(path))
    matrix = asked_matrix(sweep)
    cells = [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    return sweep, dict(zip(names_of(cells), cells, strict=True))


def quick(sweep: Sweep) -> Sweep:
    """One trial, few windows, no warm-up: for `--benchmark-disable`, which proves and does not time."""
    return sweep.model_copy(update={**PROVING, "half_width": 0.0})


@dataclass(frozen=True)
class MeasuredCell:
    """One cell over its trials in one run."""

    run: Run
    summary: CellSummary
    trials: tuple[TrialRecord, ...]

    @property
    def status(self) -> str:
        """The cell's status; one wrong trial makes it wrong."""
        return self.summary.trials.status

    def step_times_s(self) -> list[float]:
        """Seconds a step of every measured window of every good trial, in order; none is dropped."""
        return [
            seconds / trial.windows.steps_per_window
            for trial in self.trials
            if trial.measured and trial.windows is not None
            for seconds in trial.windows.seconds[trial.windows.measured_from :]
        ]

    def trouble(self) -> str:
        """What went wrong, with the evidence; empty when every trial ended well."""
        return "\n".join(_explain(problem) for problem in self.summary.trials.problems)

    def extra_info(self) -> dict[str, Any]:
        """What goes beside pytest-benchmark's statistics; plain JSON."""
        cell, measured = self.summary.trials.cell, self.summary.measured
        good = [trial for trial in self.trials if trial.measured]
        checks = good[-1].checks if good else self.trials[-1].checks
        return {
            "cell_id": cell.cell_id,
            "cell": cell.model_dump(mode="json"),
            "status": self.status,
            "run_id": self.run.manifest.run_id,
            "trials": dict(self.summary.trials.counts),
            "interval_of_throughput": OWN_INTERVAL,
            "throughput_examples_per_s": _interval(measured.throughput if measured else None),
            "speed_up_over_no_strategy": _scaling(self.summary.vs_none),
            "cpu_seconds_per_example": measured.cpu_seconds_each if measured else None,
            "peak_memory_bytes": measured.peak_memory_bytes if measured else None,
            "trend": measured.trend if measured else None,
            "steps_per_window": [trial.windows.steps_per_window for trial in good if trial.windows],
            "checks": checks.model_dump(mode="json"),
            "fingerprint": self.summary.trials.executed.fingerprint,
            "operations": self.summary.trials.executed.operations,
            "shared_devices": self.summary.trials.shared,
        }


def measured_cells(run: Run) -> Mapping[str, MeasuredCell]:
    """The cells of a run by cell id."""
    summary = summarise(run.manifest, run.trials)
    return {
        cell_id: MeasuredCell(run, cell, tuple(trial for trial in run.trials if trial.cell_id == cell_id))
        for cell_id, cell in summary.by_id.items()
    }


def _explain(problem: Problem) -> str:
    lines = [f"{problem.status} in {problem.trials} of its trials: {problem.reason}"]
    lines += [f"  {name}: {text}" for name, text in problem.details]
    if problem.evidence:
        lines += ["  " + line for line in problem.evidence.splitlines()]
    return "\n".join(lines)


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else {field.name: getattr(interval, field.name) for field in fields(interval)}


def _scaling(scaling: Scaling | None) -> dict[str, Any] | None:
    return None if scaling is None else _interval(scaling.speed_up)
