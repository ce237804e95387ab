"""What `explain` is asked to take apart: the cells of a spec, or some of a sweep that was measured before."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.analysis.choice import Choice, choice_of
from harness.analysis.summary import JUDGED, summarise
from harness.errors import UsageError
from harness.record.manifest import SweepPlan
from harness.record.reading import MANIFEST_NAME, Run, load_run, resolve_run
from harness.run.kinds import explain
from harness.run.request import asked_matrix, names_for
from harness.spec.axes import CELL_KEYS, USUAL_STRATEGY
from harness.spec.cell import trained
from harness.spec.engines import engine_for, must_be_read, must_be_set
from harness.spec.exclusions import exclusions
from harness.spec.inputs import LeftOut
from harness.spec.spelling import same
from harness.spec.sweep import AXES, NOT_OF_EXPLAIN, OF_SWEEPS, Sweep, load_sweep, sweep_from
from harness.spec.work import Cell

ONE = {"strategy": [USUAL_STRATEGY], "replicas": [2], "batch_size": [32]}
"""The cell that is explained where nobody names an axis."""


def settings_asked(
    of: Path | None, keys: Mapping[str, Any], results: Path
) -> tuple[explain.ExplainSettings, Choice | None]:
    """What `explain` is to do with `of`, a spec or the name of a sweep's run in `results`, with `keys` laid over it;
    and of a run why these cells. Without `of` it is one cell. UsageError names what makes no sense."""
    if of is None or of.suffix == ".toml" or _is_spec(of):
        return _settings_of_spec(of, keys), None
    return settings_of_sweep(load_run(resolve_run(str(of), results)), keys)


def _is_spec(path: Path) -> bool:
    """Whether it is there, and no folder or file of a run."""
    try:
        return path.exists() and not (path.is_dir() or (path.parent / MANIFEST_NAME).is_file())
    except OSError:  # nothing can be called so; to look for a run of that name says why
        return False


def _settings_of_spec(spec: Path | None, keys: Mapping[str, Any]) -> explain.ExplainSettings:
    asked = {**({} if spec is None else load_sweep(spec)), **keys}
    source = "explain" if spec is None else str(spec)
    for key in ("work", "step"):
        if asked.get(key, default := Sweep.model_fields[key].default) != default:
            raise UsageError(f"{source}: {key}: explain takes trainings of a model, whose steps it knows; leave it out")
    sweep = sweep_from(
        {**explain.OF_EXPLAIN, **({} if AXES & asked.keys() else ONE), **asked}, source, unused=NOT_OF_EXPLAIN
    )
    matrix = asked_matrix(sweep)
    measured = {engine_for(cell, sweep) for cell in matrix.cells}
    if lacking := [engine for engine in sweep.asked("engine") if engine not in measured]:
        reasons = "; ".join(item.words for item in matrix.left_out)
        raise UsageError(f"engine: '{lacking[0]}' has no cell to explain ({reasons}); leave it out")
    cells = [trained(cell) for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    unfit = {cell: fault for cell in cells if (fault := explain.no_instruments(cell, engine_for(cell, sweep)))}
    fit = [cell for cell in cells if cell not in unfit] or cells  # of which the first is refused with its reason
    left_out = [LeftOut(cell.label, fault) for cell, fault in unfit.items()]
    return explain.ExplainSettings(sweep, fit, [*matrix.left_out, *left_out])


def settings_of_sweep(run: Run, given: Mapping[str, Any]) -> tuple[explain.ExplainSettings, Choice]:
    """What `explain` is to do with cells of `run`, by its own settings, and why with these.

    `given` are keys of a spec: axes choose among the run's cells, the rest is laid over its settings. UsageError where
    the run is no finished sweep, or none of its cells can be taken apart.
    """
    manifest = run.manifest
    if not isinstance(manifest.what, SweepPlan):
        raise UsageError(f"RUN: '{manifest.run_id}' is a run of {manifest.kind}; explain takes a spec or a sweep's run")
    if manifest.status != JUDGED:
        raise UsageError(
            f"RUN: '{manifest.run_id}' has not finished, so which cell is the fastest is open; go on with it: "
            f"python -m harness sweep --resume {manifest.run_id}"
        )
    axes = {key: value for key, value in given.items() if key in AXES}
    asked = sweep_from({**explain.OF_EXPLAIN, **given}, "explain")
    excluded = exclusions(asked.exclude)

    def fits(cell: Cell) -> bool:
        names = names_for(cell, manifest.sweep)
        is_asked = all(any(same(key, _value(cell, key), one, names) for one in asked.asked(key)) for key in axes)
        return is_asked and not any(exclusion.fits(cell, names) for exclusion in excluded)

    choice = choice_of(summarise(manifest, run.trials, run.rank_unproved), fits, explain.no_instruments)
    ours = {*explain.OF_EXPLAIN, *OF_SWEEPS, "name"}
    laid_over = {key: getattr(asked, key) for key in ours | given.keys() - axes.keys()}
    sweep = manifest.sweep.model_copy(update=laid_over)
    names = [names_for(cell, sweep) for cell in choice.cells]
    refused = set.intersection(*({*of.refuses} for of in names)) - given.keys()  # by now: the run could have them
    sweep = sweep.model_copy(update={key: Sweep.model_fields[key].default for key in refused})
    must_be_set(sweep, names)
    must_be_read(asked.model_copy(update={"device": [cell.shape.device for cell in choice.cells]}), names)
    return explain.ExplainSettings(sweep, list(choice.cells)), choice


def _value(cell: Cell, key: str) -> Any:
    """What the cell has of an axis of a spec; None where it has none of that kind."""
    if key not in CELL_KEYS:
        return cell.get(key)
    kind, _, count = str(cell.get(CELL_KEYS[key])).partition("=")
    return int(count) if kind == key else None
