"""Measure a list of cells as a sweep does, for callers that are not the command line.

`benchmarks/conftest.py` is one: there each cell is a test of pytest-benchmark.
"""

import datetime
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import harness
from harness.engines.tensorflow.catalogue import load_catalogue
from harness.engines.tensorflow.data import default_data_dir
from harness.environment import facts, other_machine, warnings
from harness.errors import Interrupted, UsageError
from harness.plan import estimate, make_plan
from harness.record.manifest import LeftOutRecord, Machine, RunManifest
from harness.record.reading import Run, load_run
from harness.record.store import RunStore, new_run_id
from harness.run.kinds.sweep import SweepRun, live_limits
from harness.run.launchers import open_launchers
from harness.run.process.preflight import preflight
from harness.run.process.zygote import Zygote, ZygoteError
from harness.run.progress.base import Progress, Quiet
from harness.spec.cell import Cell
from harness.spec.expand import Matrix, base_of
from harness.spec.sweep import Sweep

PREFLIGHT_S = 300.0


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
    bases = {base.cell_id: base for base in map(base_of, cells) if base.cell_id not in wanted}
    matrix = Matrix((*bases.values(), *wanted.values()), added_base=frozenset(bases))
    return load_run(measure_matrix(sweep, matrix, results, command, progress or Quiet()))


def measure_matrix(sweep: Sweep, matrix: Matrix, results: Path, command: Sequence[str], progress: Progress) -> Path:
    """Measure and record `matrix`; returns the run's folder. Raises what `measure` does."""
    manifest = _manifest(sweep, matrix, command)
    data_dir = data_dir_of(sweep)
    with RunStore.create(results, manifest) as store:
        run = SweepRun(store, sweep, load_catalogue(), progress, data_dir)
        carry_out(run, estimate(sweep, matrix.cells).seconds)
    return store.path


def carry_out(run: SweepRun, expected_s: float, resumed: bool = False) -> None:
    """Start TensorFlow, try what is the user's own, and run what is missing of `run`.

    A new run in which nothing could be measured, since a user's own model or TensorFlow cannot be
    loaded, is taken back. Raises HarnessError; Interrupted says how to go on.
    """
    go_on = f"go on with: python -m harness sweep --resume {shlex.quote(str(run.store.path))}"
    try:
        with Zygote() as zygote:
            if not resumed:
                preflight(zygote, run.requests(), min(PREFLIGHT_S, run.sweep.timeout))
            open_launchers(run.requests(), zygote)
            run.run(zygote, expected_s)
    except (Interrupted, KeyboardInterrupt):
        run.store.end("interrupted")
        raise Interrupted(f"interrupted; {len(run.trials)} trials are kept in {run.store.path}; {go_on}") from None
    except (UsageError, ZygoteError) as error:
        if not resumed and not run.trials:
            run.store.discard()
            raise
        raise ZygoteError(f"{error}; {len(run.trials)} trials are kept in {run.store.path}; {go_on}") from error


def data_dir_of(sweep: Sweep) -> Path:
    """Where the prepared data of `sweep` are kept; UsageError when nobody knows whose home folder is meant."""
    try:
        folder = Path(sweep.data_dir).expanduser() if sweep.data_dir else default_data_dir()
    except RuntimeError as error:
        raise UsageError(f"data_dir: given '{sweep.data_dir}', expected a folder: {error}") from None
    # absolute, because the process of a side of a comparison may have another working folder
    return folder.absolute()


def _manifest(sweep: Sweep, matrix: Matrix, command: Sequence[str]) -> RunManifest:
    """The manifest of a sweep that is about to begin, its plan sealed."""
    return new_manifest(
        sweep.name,
        command,
        sweep=sweep,
        cells=list(matrix.cells),
        base_cell_ids=sorted(matrix.added_base),
        left_out=[LeftOutRecord(combination=x.combination, reason=x.reason) for x in matrix.left_out],
        plans=[make_plan(matrix.cells, sweep.trials, sweep.seed, live_limits(sweep, load_catalogue()))],
    )


def check_machine(manifest: RunManifest) -> None:
    """UsageError where a run that is to be gone on with was begun on another machine, or on this one in another state.

    Its sides would still have taken turns, but what was planned from the first blocks would not hold for the rest.
    """
    if changes := other_machine(manifest.facts, facts()):
        raise UsageError(
            f"--resume: '{manifest.run_id}' was begun on another machine or in another state "
            f"({'; '.join(map(str, changes[:3]))}); begin a new run"
        )


def new_manifest(name: str, command: Sequence[str], **rest: Any) -> RunManifest:
    """The manifest of a run that begins now, on this machine; `rest` is what it sets out to do."""
    found = facts()
    return RunManifest(
        run_id=new_run_id(name),
        created_utc=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=list(command),
        harness_version=harness.__version__,
        machine=Machine(facts=found, warnings=warnings(found)),
        **rest,
    )
