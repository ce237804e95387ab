"""Measure a list of cells as a sweep does, for callers that are not the command line.

`benchmarks/conftest.py` is one: there each cell is a test of pytest-benchmark.
"""

from collections.abc import Sequence
from pathlib import Path

from harness.record.reading import Run, load_run
from harness.run.kinds.sweep import SweepRun, first_plan
from harness.run.progress import Progress, Quiet
from harness.run.request import names_for
from harness.run.runner import begin, new_manifest
from harness.spec.bases import under_one_loop
from harness.spec.exclusions import excluded_by
from harness.spec.expand import Matrix
from harness.spec.sweep import Sweep
from harness.spec.work import Cell


def measure(
    sweep: Sweep, cells: Sequence[Cell], results: Path, command: Sequence[str] = (), progress: Progress | None = None
) -> Run:
    """Measure `cells` and their base cases with the settings of `sweep`, and record a run under `results`.

    The axes of `sweep` play no part; `cells` may be any of its matrix. Everything else is as in a
    sweep: fresh processes, blocks, turns, the gate, durable records. Raises HarnessError: UsageError
    when a user's own model cannot be loaded (nothing is then left), StorageError when `results`
    cannot be used, Interrupted, with how to go on, when the person asked to stop.
    """
    wanted = {cell.cell_id: cell for cell in cells}
    every = [*cells, *(base for cell in cells for base in cell.bases(names_for(cell, sweep)))]
    measured = under_one_loop(((cell, names_for(cell, sweep)) for cell in every), left_out=excluded_by(sweep.exclude))
    bases = {base.cell_id: base for base in measured.values() if base.cell_id not in wanted}
    matrix = Matrix((*bases.values(), *wanted.values()), added_base=frozenset(bases))
    return load_run(measure_matrix(sweep, matrix, results, command, progress or Quiet()))


def measure_matrix(sweep: Sweep, matrix: Matrix, results: Path, command: Sequence[str], progress: Progress) -> Path:
    """Measure and record `matrix`; returns the run's folder. Raises what `measure` does."""
    manifest = new_manifest(
        sweep.name,
        command,
        sweep=sweep,
        cells=list(matrix.cells),
        base_cell_ids=sorted(matrix.added_base),
        left_out=matrix.left_out,
        plans=[first_plan(sweep, matrix.cells)],
    )
    return begin(SweepRun, results, manifest, progress)
