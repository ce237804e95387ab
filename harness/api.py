"""The Python API, for notebooks and scripts: `import harness`. Nothing here imports TensorFlow.

The columns of the frames, their units and types are those of `docs/python.md`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.arguments import as_toml, call_words, checked
from harness.errors import UsageError
from harness.looks import MOST_BLOCKS
from harness.trial.script import mark_step as mark_step  # it is offered as it is
from harness.visible import message, quoted

if TYPE_CHECKING:
    import pandas as pd

    from harness.analysis.summary import RunSummary
    from harness.analysis.tries import Try
    from harness.record.reading import Run
    from harness.report.notebook import ComparisonResult, ExplainResult, SweepResult
    from harness.run.kinds.sides import Both, Side
    from harness.run.progress import Progress

PathName = str | os.PathLike[str]
"""A run: its folder, its id, the beginning of either, its name, `latest`, or `latest~1`, the one before."""
Folder = str | os.PathLike[str]
ShareOrText = float | str
"""A share as a number or, as on the command line, a text: 0.01, `1%`."""
RESULTS = Path("results")
"""Where runs are looked for unless a folder is named."""


@checked
def load(*runs: PathName, results: Folder = RESULTS) -> pd.DataFrame:
    """The trials of one run or of several, one row a trial, failed ones included.

    A run is its folder, its id, the beginning of either, its name, `latest` (the default), or `latest~1`, the one
    before. Times are in seconds, throughputs in examples a second; a trial that is not `ok` has no throughput.
    Raises HarnessError: UsageError when there is no such run, StorageError when it cannot be read.
    """
    from harness.report.tables.frames import trial_frame

    return trial_frame([trial for run in _read(runs, results) for trial in run.trials])


@checked
def load_windows(*runs: PathName, results: Folder = RESULTS) -> pd.DataFrame:
    """The windows of every trial that took any, one row a window, warm-up included (`measured` tells them apart).

    Arguments and errors are those of `load`.
    """
    from harness.report.tables.frames import window_frame

    return window_frame([trial for run in _read(runs, results) for trial in run.trials])


@checked
def load_cells(*runs: PathName, results: Folder = RESULTS) -> pd.DataFrame:
    """The cells of one run or of several with their estimates: 95 % intervals, speed-ups, ranks; one row a cell.

    Arguments and errors are those of `load`. Of an imported run its published figures. UsageError, too, for a run of
    `ab` or `validate`, whose figures are of sides.
    """
    from harness.report.tables.cells import cell_frame

    return cell_frame(_read(runs, results, trials=False))


@checked
def load_parts(*runs: PathName, results: Folder = RESULTS) -> pd.DataFrame:
    """The parts of each cell's step, of one run of `explain` or of several, one row a part with its 95 % interval.

    Arguments and errors are those of `load`; UsageError, too, for a run of another kind.
    """
    from harness.report.tables.frames import part_frame

    return part_frame(_read(runs, results))


@checked
def load_collectives(*runs: PathName, results: Folder = RESULTS) -> pd.DataFrame:
    """The collectives of one run of `work="collective"` or of several: time, algbw and busbw with 95 % intervals, and
    the line α + S/β; one row a collective of a size, of a run of `ab` one a side.

    Arguments and errors are those of `load`; UsageError, too, for a run without collectives.
    """
    from harness.report.tables.cells import collective_frame

    return collective_frame(_read(runs, results), Path(results))


@checked
def load_pipelines(*runs: PathName, results: Folder = RESULTS) -> pd.DataFrame:
    """The input pipelines of one run of `work="pipeline"` or of several: what each gives with its 95 % interval, what
    its model takes and whether input is the limit; one row a pipeline, and one a stage that it is cut off behind,
    of a run of `ab` one a side.

    Arguments and errors are those of `load`; UsageError, too, for a run without pipelines.
    """
    from harness.report.tables.cells import pipeline_frame

    return pipeline_frame(_read(runs, results))


@checked
def load_limits(*runs: PathName, results: Folder = RESULTS) -> pd.DataFrame:
    """How far the cells of one run or of several are from what their machine can do at most; one row a cell whose
    operations were counted, of a run of `ab` one a side.

    The limits are those of the machine that `doctor --limits` left in `results`; without any, only their columns are
    empty. Arguments and errors are those of `load`; UsageError, too, for a run of which nothing was counted, or of
    `validate`.
    """
    from harness.report.tables.cells import rate_frame

    return rate_frame(_read(runs, results), Path(results))


@checked
def runs(results: Folder = RESULTS) -> pd.DataFrame:
    """The runs in `results`, the oldest first, one row a run; one that cannot be read says why in `problem`.

    StorageError where `results` cannot be read.
    """
    from harness.record.reading import list_runs
    from harness.report.tables.frames import listing_frame

    return listing_frame(list_runs(Path(results)))


@checked
def read(run: PathName = "latest", results: Folder = RESULTS) -> Run:
    """The run as recorded: `manifest` and `trials`, typed. Raises what `load` does."""
    from harness.record.reading import load_run, resolve_run

    return load_run(resolve_run(os.fspath(run), Path(results)))


@checked
def summary(run: PathName = "latest", results: Folder = RESULTS, side: str | None = None) -> RunSummary:
    """Everything that the report says of a run: cells, rankings, answers, noise; of a run of `ab` of one `side` of it,
    "a" or "b". Raises what `load` does; UsageError, too, for a run of `validate`."""
    from harness.analysis.summary import summarise
    from harness.report.kinds import presentation_of

    found = read(run, results)
    sides = presentation_of(found.manifest).each_side(found)
    if side not in sides:
        expected = " or ".join(quoted(name) for name in sides if name) or "none: the run has no sides"
        raise UsageError(f"side: given {quoted(side)}, expected {expected}")
    return summarise(sides[side].manifest, sides[side].trials)


@checked
def sweep(
    spec: PathName | None = None,
    *,
    limits: bool = False,
    resume: PathName | None = None,
    retry: bool = False,
    results: Folder = RESULTS,
    quiet: bool = False,
    **keys: Any,
) -> SweepResult:
    """Measure every combination of the axes and record it, as `python -m harness sweep` does.

    `keys` are the keys of a spec, which are the flags' names: `strategy=["none", "mirrored"], replicas=[1, 2]`; they
    are laid over `spec`, a TOML file. Without either it is the default sweep. With `limits` what this machine can do at
    most is measured again before it. `resume` is a run to complete, with `retry` also where trials crashed, hung or ran
    out of memory. Progress goes to standard error unless `quiet`. A warning says where no trial came to a figure;
    `trials` and `cells` of the result then have the reasons. Raises
    HarnessError: UsageError, naming the key, before anything is recorded; StorageError; Interrupted, with how to go on.
    """
    from harness.record.reading import load_run
    from harness.report.notebook import SweepResult
    from harness.run.kinds.measure import measure_matrix
    from harness.run.request import asked_matrix
    from harness.spec.sweep import raw_keys, sweep_from

    if resume is not None:
        path = _resumed("sweep", resume, results, {"spec": spec, "limits": limits or None, **keys}, quiet, retry)
    elif retry:
        raise UsageError("retry: runs again what failed in an earlier run; name that with resume")
    else:
        keys = as_toml(keys)
        asked = sweep_from(*raw_keys(None if spec is None else Path(spec), keys))
        matrix = asked_matrix(asked)
        _renew_limits(limits, results, quiet)
        command = call_words("sweep", spec=spec, limits=limits or None, **keys)
        path = measure_matrix(asked, matrix, Path(results), command, _progress(quiet))
    result = SweepResult(load_run(path))
    if (nothing := result.run.unmeasured) is not None:
        warnings.warn(message(str(nothing)), stacklevel=3)  # past what checks the arguments
    return result


@checked
def explain(
    spec: PathName | None = None,
    *,
    try_levers: bool = False,
    limits: bool = False,
    resume: PathName | None = None,
    results: Folder = RESULTS,
    quiet: bool = False,
    **keys: Any,
) -> ExplainResult:
    """Say where the time of steps goes, measured now, as `python -m harness explain` does.

    `spec` is a TOML file whose cells are taken apart, or the name of a sweep's run: then the cells that one asks about,
    the fastest first, of those that `keys` choose. `keys` are laid over it; without either it is one cell. With
    `try_levers` up to three of the flags that fit are then measured by `ab`, as by `--try`. `limits` and `resume` are
    those of `sweep`. A warning says where nothing was measured, or no lever could be. Errors are those of `sweep`.
    """
    from harness.analysis.tries import nothing_told
    from harness.record.reading import load_run
    from harness.report.notebook import ExplainResult
    from harness.run.kinds import explain as kind
    from harness.run.kinds.explain_settings import settings_asked

    if resume is not None:
        path = _resumed("explain", resume, results, {"spec": spec, "limits": limits or None, **keys}, quiet)
    else:
        keys = as_toml(keys)
        settings, _ = settings_asked(None if spec is None else Path(spec), keys, Path(results))
        _renew_limits(limits, results, quiet)
        command = call_words("explain", spec=spec, try_levers=try_levers or None, limits=limits or None, **keys)
        path = kind.explain(settings, Path(results), command, _progress(quiet))
    tried = _tried(path, quiet) if try_levers else ()
    result = ExplainResult(load_run(path))
    if (nothing := nothing_told(result.explanations, tried)) is not None:
        warnings.warn(message(str(nothing)), stacklevel=3)  # past what checks the arguments
    return result


def _renew_limits(limits: bool, results: Folder, quiet: bool) -> None:
    if limits:
        from harness.run.limits import renew_limits

        renew_limits(Path(results), quiet)


def _tried(path: Path, quiet: bool) -> Sequence[Try]:
    from harness.run.kinds import tries
    from harness.run.progress import say_line

    return tries.try_levers(path, lambda: _progress(quiet), lambda line: None if quiet else say_line(line, sys.stderr))


@checked
def ab(
    spec: PathName | None = None,
    *,
    a: Mapping[str, Any] | None = None,
    b: Mapping[str, Any] | None = None,
    python_a: PathName | None = None,
    python_b: PathName | None = None,
    rev_a: str | None = None,
    rev_b: str | None = None,
    delta: ShareOrText | None = None,
    epsilon: ShareOrText | None = None,
    max_blocks: int | None = None,
    looks: Sequence[int] | None = None,
    time: float | None = None,
    resume: PathName | None = None,
    results: Folder = RESULTS,
    quiet: bool = False,
    **keys: Any,
) -> ComparisonResult:
    """Decide A against B, both measured now and taking turns, as `python -m harness ab` does.

    `a` and `b` are keys of one side alone, `env.NAME` variables of its environment; `keys` and `spec` are both sides'.
    `python_a` and `python_b` are the sides' interpreters, `rev_a` and `rev_b` their git revisions; `time` is in
    seconds. The rest, and the errors, are those of `sweep` and `compare`.
    """
    from harness.record.reading import load_run
    from harness.report.kinds.ab import comparison_of
    from harness.report.notebook import ComparisonResult
    from harness.run.kinds.ab import decide
    from harness.run.kinds.decision import settings_for

    delta, epsilon = _share("delta", delta), _share("epsilon", epsilon)
    keys, a, b = as_toml(keys), a and as_toml(a), b and as_toml(b)
    plan = {"delta": delta, "epsilon": epsilon, "looks": looks, "max_blocks": _blocks(max_blocks)}
    where = {"python_a": python_a, "python_b": python_b, "rev_a": rev_a, "rev_b": rev_b}
    folder, given = Path(results), {"spec": spec, "a": a, "b": b, **where, **plan, "time": time, **keys}
    if resume is not None:
        return ComparisonResult(comparison_of(load_run(_resumed("ab", resume, results, given, quiet)), folder))
    sides = _sides(spec, keys, (a, b), (python_a, python_b), (rev_a, rev_b))
    settings = settings_for(folder, delta, epsilon, looks, max_blocks, time)
    run = decide(sides, settings, folder, call_words("ab", **given), _progress(quiet))
    return ComparisonResult(comparison_of(run, folder))


def _blocks(most: int | None) -> int | None:
    """`max_blocks`; UsageError where it is out of bounds."""
    if most is not None and not 2 <= most <= MOST_BLOCKS:
        raise UsageError(f"max_blocks: given {most}, expected 2 to {MOST_BLOCKS}")
    return most


def _sides(
    spec: PathName | None,
    keys: Mapping[str, Any],
    own: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
    pythons: tuple[PathName | None, PathName | None],
    revisions: Both,
) -> tuple[Side, Side]:
    """Sides A and B: what `spec` and `keys` give both, with each one's `own` keys laid over it. Raises UsageError."""
    from harness.run.kinds.one_cell import refuse_what_is_of_the_comparison, texts_of
    from harness.run.kinds.sides import SIDE_NAMES, sides_of
    from harness.spec.sweep import load_sweep

    refuse_what_is_of_the_comparison(keys)
    base = {**({} if spec is None else load_sweep(Path(spec))), **keys}
    a, b = map(texts_of, SIDE_NAMES, own)
    one, other = (None if python is None else os.fspath(python) for python in pythons)
    return sides_of(base, a, b, pythons=(one, other), revisions=revisions, windowed=True)


@checked
def compare(
    a: PathName,
    b: PathName | None = None,
    *,
    along: str | None = None,
    base: str | None = None,
    delta: ShareOrText | None = None,
    epsilon: ShareOrText | None = None,
    correction: str = "fdr",
    across_machines: bool = False,
    results: Folder = RESULTS,
) -> ComparisonResult:
    """Is B slower than A? Two runs cell by cell, the cells of run `a` `along` an axis, or the verdict of an `ab` run.

    `verdict` is the worst of all comparisons; `frame` has a row each: its verdict, the ratio of throughputs B over A
    with its 95 % interval, and what it rests on. `delta` is the smallest difference that counts
    and `epsilon` the margin of equivalence, as shares (0.01 or `1%`); without them they are chosen as
    `python -m harness compare` does. `correction` is for many comparisons at once: `fdr`, `holm` or `none`. Raises
    HarnessError when the runs cannot be compared.
    """
    from harness.analysis.comparison.asked import ComparisonAsked
    from harness.analysis.estimates.verdict import correction_of
    from harness.report.notebook import ComparisonResult
    from harness.run.request import names_for

    how = correction_of("correction", correction)
    nothing = "compare: expected a second run, or along=AXIS to compare the cells of one run"
    if b is not None and along is not None:
        raise UsageError(nothing)
    margins = _share("delta", delta), _share("epsilon", epsilon)
    asked = ComparisonAsked(along, base, *margins, how, across_machines, names=("a", "b"), names_for=names_for)
    other = None if b is None else read(b, results)
    return ComparisonResult(asked.comparison(read(a, results), other, Path(results), nothing))


def _progress(quiet: bool) -> Progress:
    from harness.run.progress import PlainLines, Quiet

    return Quiet() if quiet else PlainLines()


def _resumed(
    kind: str, run: PathName, results: Folder, beside: dict[str, Any], quiet: bool, retry: bool = False
) -> Path:
    """Complete the run, of that kind, with `retry` also what failed in it; its folder."""
    from harness.record.reading import resolve_run
    from harness.run.resume import resume

    for key in (key for key, value in beside.items() if value is not None):
        raise UsageError(f"resume: goes on with a run as it was planned; it takes no {key}")
    path = resolve_run(os.fspath(run), Path(results))
    resume(kind, path, _progress(quiet), retry)
    return path


def _share(key: str, given: ShareOrText | None) -> float | None:
    from harness.analysis.comparison.margins import parse_share

    return parse_share(key, given) if isinstance(given, str) else given


def _read(given: tuple[PathName, ...], results: Folder, *, trials: bool = True) -> list[Run]:
    found = [read(run, results) for run in given or ("latest",)]
    for run in found:
        run_id, kind = run.manifest.run_id, run.manifest.what.kind
        if trials and not kind.measured:
            raise UsageError(f"RUN: '{run_id}' was imported and has no trials; harness.load_cells has its figures")
        if not kind.has_trials:
            raise UsageError(
                f"RUN: '{run_id}' is a run of {kind.verb}: it has {kind.unit} and no trials; see `show --json`"
            )
    return found
