"""The settings of `explain` for cells of a sweep that was measured before."""

from collections.abc import Mapping
from typing import Any

from harness.analysis.choice import Choice, choice_of
from harness.analysis.comparison.axis import CELL_KEYS
from harness.analysis.summary import JUDGED, summarise
from harness.errors import UsageError
from harness.record.manifest import SweepPlan
from harness.record.reading import Run
from harness.run.kinds import explain
from harness.spec.axes import SETTINGS
from harness.spec.cell import Cell
from harness.spec.sweep import AXES, sweep_from


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
    asked = sweep_from({**explain.SETTINGS, **given}, "explain")

    def fits(cell: Cell) -> bool:
        return all(_value(cell, key) in asked.asked(key) for key in axes)

    choice = choice_of(summarise(manifest, run.trials, run.rank_unproved), fits, explain.no_instruments)
    ours = {*explain.SETTINGS, *(key for key, setting in SETTINGS.items() if setting.of_sides), "name"}
    laid_over = {key: getattr(asked, key) for key in ours | given.keys() - axes.keys()}
    return explain.ExplainSettings(manifest.sweep.model_copy(update=laid_over), list(choice.cells)), choice


def _value(cell: Cell, key: str) -> Any:
    """What the cell has of an axis of a spec; None where it has none of that kind."""
    if key not in CELL_KEYS:
        return cell.get(key)
    kind, _, count = str(cell.get(CELL_KEYS[key])).partition("=")
    return int(count) if kind == key else None
