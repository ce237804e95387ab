"""Runs of the working tree alone: kept as a baseline by name, compared with one, or proof that it is right.

A baseline is a run like any other, called `baseline-NAME`; `harness list`, `show` and `compare` read it.
Cells are measured one at a time, so that what a cell's figures are does not depend on which others were
selected with it, and block after block, so that a minute of a busy machine does not hit one cell alone.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.analysis.comparison.result import Comparison
from harness.analysis.comparison.runs import COMPARED, compare_runs
from harness.analysis.comparison.sides import SideCell, side_cells
from harness.environment import other_machine
from harness.errors import HarnessError, Interrupted, UsageError, nearest
from harness.pytest_plugin.marks import GateCell
from harness.pytest_plugin.result import HERE, GateEnd, GateResult, compared_result, end_of, why_not
from harness.pytest_plugin.rules import GateRules
from harness.record.reading import Run, list_runs, load_manifest, load_run
from harness.report.words.text import listed
from harness.run.kinds.measure import measure_matrix
from harness.run.progress import Progress
from harness.spec.axes import OF_OWN_STEP
from harness.spec.expand import Matrix
from harness.spec.sweep import AXES, OF_STEP, PROVING, Sweep
from harness.visible import plural

PREFIX = "baseline-"
ALONE = {"live_trials": 1, "half_width": 0.0}
_MUST_AGREE = tuple(key for key in COMPARED if key not in ("live_trials", "data_dir"))
CellNames = Mapping[str, str]
"""What cells are called, by their keys."""


def baselines(results: Path) -> dict[str, list[Path]]:
    """The finished baselines below `results` by name, the newest run of each first. Raises StorageError.

    None is read whole: one that is damaged does not matter to the others.
    """
    found: dict[str, list[Path]] = {}
    for row in reversed(list_runs(results)):
        if row.status == "finished" and row.name is not None and row.name.startswith(PREFIX):
            found.setdefault(row.name.removeprefix(PREFIX), []).append(row.path)
    return found


@dataclass(frozen=True)
class Baseline:
    """The runs of a name that may be compared with, the newest first, and the names of those that may not: of a machine
    in another state a difference in speed could be the machine's and nothing else."""

    runs: tuple[Run, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def left_out_words(self) -> str:
        """What is said of those left out; empty without any."""
        if not self.left_out:
            return ""
        runs = f"{plural(len(self.left_out), 'run')} of another machine or in another state"
        return f"{runs} left out: {listed(self.left_out)}"


def baseline(rules: GateRules) -> Baseline:
    """The baseline that was asked for.

    UsageError, in one line, when there is none of that name, or none that may be compared with.
    """
    name, results = rules.options.baseline or "", rules.options.results
    there = baselines(results)
    if name not in there:
        known = f"there are {', '.join(sorted(there))}{nearest(name, there)}" if there else "there are none yet"
        raise UsageError(
            f"--gate-baseline: no baseline '{name}' in '{results}'; {known}; pytest --gate-save {name} makes it"
        )
    refused = {path: other_machine(load_manifest(path).facts, rules.machine) for path in there[name]}
    if all(refused.values()):
        raise UsageError(
            f"--gate-baseline: '{name}' cannot be compared with: the machine was another or in another state "
            f"({'; '.join(map(str, refused[there[name][0]][:3]))}); save it anew, or use --gate-against, which needs "
            "nothing stored"
        )
    runs = tuple(load_run(path) for path, why in refused.items() if not why)
    return Baseline(runs, tuple(path.name for path, why in refused.items() if why))


def saved(names: CellNames, cells: Sequence[GateCell], rules: GateRules, progress: Progress) -> dict[str, GateResult]:
    """Each cell measured and kept under the name that was asked for. Raises Interrupted."""
    taken = _measured(cells, f"{PREFIX}{rules.options.save}", rules, _timed(rules), progress)
    return {key: _alone(names[key], run, cell, "saved", rules) for key, (cell, run) in taken.items()}


def proved(names: CellNames, cells: Sequence[GateCell], rules: GateRules, progress: Progress) -> dict[str, GateResult]:
    """Each cell through the correctness gate and one short trial. Raises Interrupted."""
    taken = _measured(cells, None, rules, PROVING, progress)
    return {key: _alone(names[key], run, cell, "proved", rules) for key, (cell, run) in taken.items()}


def against_baseline(
    names: CellNames, cells: Sequence[GateCell], base: Baseline, rules: GateRules, progress: Progress
) -> dict[str, GateResult]:
    """Each cell measured and compared with its newest run in the baseline. Raises Interrupted."""
    found, results = {}, {}
    kept = [(run, functools.cache(functools.partial(side_cells, run))) for run in base.runs]
    for cell in cells:
        match = _base_of(cell, kept)
        if isinstance(match, Run):
            found[cell.key] = match
        else:
            left_out = f" ({base.left_out_words})" if base.left_out else ""
            reason = f"baseline '{rules.options.baseline}' {match}{left_out}; save it again with --gate-save"
            results[cell.key] = GateResult(names[cell.key], "skipped", reason)
    name = None if rules.options.save is None else f"{PREFIX}{rules.options.save}"
    taken = _measured([cell for cell in cells if cell.key in found], name, rules, _timed(rules), progress)
    for key, (cell, run) in taken.items():
        results[key] = _compared(names[key], cell, found[key], run, rules)
    return results


def _timed(rules: GateRules) -> dict[str, int]:
    return {"trials": rules.most, "max_trials": rules.most}


def _base_of(cell: GateCell, base: Iterable[tuple[Run, Callable[[], Mapping[str, SideCell]]]]) -> Run | str:
    """The newest run that measured the cell in the same way, or why there is none; each run with what reads its
    cells."""
    other: list[str] = []
    for run, sides_of in base:
        side = sides_of().get(cell.cell.cell_id)
        if side is None or side.trials.measured is None:  # of one that failed there is nothing to be slower than
            continue
        pairs = {key: (getattr(run.manifest.sweep, key), getattr(cell.sweep, key)) for key in _MUST_AGREE}
        other = [f"{key} {then}, now {now}" for key, (then, now) in pairs.items() if then != now]
        if not other:
            return run
    return (
        f"measured this cell with other settings ({'; '.join(other)})"
        if other
        else "has no run that measured this cell"
    )


def _compared(name: str, cell: GateCell, base: Run, now: Run | HarnessError, rules: GateRules) -> GateResult:
    if isinstance(now, HarnessError):
        return GateResult(name, "failed", str(now))
    try:
        whole = compare_runs(base, now, rules.margins, correction="none", validation=rules.validation)
    except HarnessError as error:
        return GateResult(name, "failed", str(error))
    [row] = [row for row in whole.rows if row.b.cell.cell_id == cell.cell.cell_id]
    title = f"baseline {rules.options.baseline} ({_origin(base)})"
    comparison: Comparison = replace(whole, title_a=title, title_b=HERE, rows=(row,), only_a=(), only_b=())
    again = f"python -m harness compare {base.manifest.run_id} {now.manifest.run_id}{rules.flags}"
    return compared_result(name, comparison, again, rules.place(now.path), rules.unknown_drift)


def _origin(base: Run) -> str:
    """Of which commit and when: `3f2a91c of 2026-11-20`."""
    revision, day = base.manifest.facts.get("git.revision"), base.manifest.created_utc[:10]
    if not isinstance(revision, str):
        return day
    commit, _, mark = revision.partition("-")
    return f"{commit[:7]}{' with changes' if mark == 'dirty' else ' or changes of it' if mark else ''} of {day}"


def _alone(name: str, run: Run | HarnessError, cell: GateCell, end: GateEnd, rules: GateRules) -> GateResult:
    """The result of a cell that is compared with nothing."""
    if isinstance(run, HarnessError):
        return GateResult(name, "failed", str(run))
    trials = side_cells(run)[cell.cell.cell_id].trials
    place = rules.place(run.path)
    again = f"python -m harness show {place}"
    if trials.measured is not None:
        throughput = trials.measured.throughput
        counted = cell.cell.work.quantity
        reason = trials.unproved or ""
        if reason and end == "proved":
            end = "unproved"
        return GateResult(name, end, reason, throughput=throughput, counted=counted, again=again, records=place)
    return GateResult(name, end_of(trials), why_not(trials, HERE), again=again, records=place)


def _measured(
    cells: Sequence[GateCell], name: str | None, rules: GateRules, changes: Mapping[str, int], progress: Progress
) -> dict[str, tuple[GateCell, Run | HarnessError]]:
    """What was measured of each cell, or why nothing was. Cells of the same settings share a run."""
    groups: dict[str, list[GateCell]] = {}
    for cell in cells:
        named = {"name": name} if name is not None else {}
        of_cell = {axis: [] for axis in AXES - OF_OWN_STEP} | {key: Sweep.model_fields[key].default for key in OF_STEP}
        shared = cell.sweep.model_copy(update={**of_cell, **ALONE, **changes, **named})
        groups.setdefault(shared.model_dump_json(), []).append(cell)
    taken: dict[str, tuple[GateCell, Run | HarnessError]] = {}
    for text, group in groups.items():
        shared = Sweep.model_validate_json(text)
        for cell, run in _run(group, shared, rules, progress):
            taken[cell.key] = cell, run
    return taken


def _run(
    group: Sequence[GateCell], shared: Sweep, rules: GateRules, progress: Progress
) -> list[tuple[GateCell, Run | HarnessError]]:
    axes = {axis: list(dict.fromkeys(v for cell in group for v in getattr(cell.sweep, axis))) for axis in AXES}
    matrix = Matrix(tuple(cell.cell for cell in group))
    try:
        whole = shared.model_copy(update=axes)
        run = load_run(measure_matrix(whole, matrix, rules.options.results, rules.command, progress))
    except Interrupted:
        raise
    except UsageError as error:
        if len(group) == 1:
            return [(group[0], error)]
        # One cell's own code cannot be loaded: the others are not to suffer for it.
        return [one for cell in group for one in _run([cell], shared, rules, progress)]
    except HarnessError as error:
        return [(cell, error) for cell in group]
    return [(cell, run) for cell in group]
