"""The Python API, for notebooks and scripts: `import harness`. Nothing here imports TensorFlow.

The columns of the frames, their units and types are those of `docs/exports.md`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from harness.analysis.comparison import Comparison
    from harness.analysis.summary import RunSummary
    from harness.record.reading import Run
    from harness.record.validation import ValidationRecord

Name = str | os.PathLike[str]
"""A run: its folder, its id, the beginning of one, or `latest`."""
Folder = str | os.PathLike[str]
RESULTS = Path("results")
"""Where runs are looked for unless a folder is named."""


def load(*runs: Name, results: Folder = RESULTS) -> pd.DataFrame:
    """The trials of one run or of several, one row a trial, failed ones included.

    A run is its folder, its id, the beginning of one, or `latest` (the default). Times are in seconds,
    throughputs in examples a second; a trial that is not `ok` has no throughput. Raises HarnessError: UsageError
    when there is no such run, StorageError when it cannot be read.
    """
    from harness.report.tables.frames import trial_frame

    return trial_frame([trial for run in _read(runs, results) for trial in run.trials])


def load_windows(*runs: Name, results: Folder = RESULTS) -> pd.DataFrame:
    """The windows of every trial that took any, one row a window, warm-up included (`measured` tells them apart).

    Arguments and errors are those of `load`.
    """
    from harness.report.tables.frames import window_frame

    return window_frame([trial for run in _read(runs, results) for trial in run.trials])


def load_cells(*runs: Name, results: Folder = RESULTS) -> pd.DataFrame:
    """The cells of one run or of several with their estimates: 95 % intervals, speed-ups, ranks; one row a cell.

    Arguments and errors are those of `load`. Of an imported run its published figures.
    """
    from harness.report.tables.frames import cell_frame

    return cell_frame(_read(runs, results, trials=False))


def runs(results: Folder = RESULTS) -> pd.DataFrame:
    """The runs in `results`, the oldest first, one row a run; one that cannot be read says why in `problem`."""
    from harness.record.reading import list_runs
    from harness.report.tables.frames import listing_frame

    return listing_frame(list_runs(Path(results)))


def read(run: Name = "latest", results: Folder = RESULTS) -> Run:
    """The run as recorded: `manifest` and `trials`, typed. Raises what `load` does."""
    from harness.record.reading import load_run, resolve_run

    return load_run(resolve_run(os.fspath(run), Path(results)))


def summary(run: Name = "latest", results: Folder = RESULTS) -> RunSummary:
    """Everything that the report says of a run: cells, rankings, answers, noise. Raises what `load` does."""
    from harness.analysis.summary import summarise

    found = read(run, results)
    return summarise(found.manifest, found.trials)


def compare(
    a: Name,
    b: Name | None = None,
    *,
    along: str | None = None,
    base: str | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    across_machines: bool = False,
    results: Folder = RESULTS,
) -> pd.DataFrame:
    """Is B slower than A? Two runs cell by cell, the cells of run `a` `along` an axis, or the verdict of an `ab` run.

    One row a comparison: its `verdict`, the `ratio` of throughputs B over A with its 95 % interval, and what it rests
    on; `attrs` holds the worst verdict, the margins and the remarks. `delta` is the smallest difference that counts
    and `epsilon` the margin of equivalence, as shares (0.01 is 1 %); without them they are chosen as
    `python -m harness compare` does. Raises HarnessError when the runs cannot be compared.
    """
    from harness.report.tables.frames import comparison_frame

    return comparison_frame(_compared(read(a, results), b, along, base, (delta, epsilon), across_machines, results))


def _compared(
    a: Run,
    other: Name | None,
    along: str | None,
    base: str | None,
    given: tuple[float | None, float | None],
    across_machines: bool,
    results: Folder,
) -> Comparison:
    from harness.analysis.comparison import choose_margins, compare_along, compare_runs, comparison_of_ab
    from harness.errors import UsageError

    of_ab = other is None and along is None and a.manifest.kind == "ab"
    if not of_ab and (other is None) == (along is None):
        raise UsageError("compare: expected a second run, or along=AXIS to compare the cells of one run")
    b = None if other is None else read(other, results)
    validation = _validation(a, b, results)
    if of_ab and given == (None, None):
        return comparison_of_ab(a, None, validation)
    margins = choose_margins(validation, unpaired=b is not None, delta=given[0], epsilon=given[1])
    if b is not None:
        return compare_runs(a, b, margins, across_machines=across_machines, validation=validation)
    if along is not None:
        return compare_along(a, along, margins, base=base, validation=validation)
    return comparison_of_ab(a, margins, validation)


def _validation(a: Run, b: Run | None, results: Folder) -> ValidationRecord | None:
    """Of the one machine that measured; a noise floor of one machine says nothing of two."""
    from harness.record.validation import find_validation

    machines = {run.manifest.facts.get("machine.id") for run in (a, b) if run is not None}
    machine = machines.pop() if len(machines) == 1 else None
    return find_validation(Path(results), machine if isinstance(machine, str) else None)


def _read(given: tuple[Name, ...], results: Folder, *, trials: bool = True) -> list[Run]:
    from harness.errors import UsageError

    found = [read(run, results) for run in given or ("latest",)]
    for run in found:
        if trials and run.manifest.kind == "import":
            raise UsageError(
                f"RUN: '{run.manifest.run_id}' was imported and has no trials; harness.load_cells has its figures"
            )
    return found
