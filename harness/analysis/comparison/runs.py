"""Two runs compared, and one run compared with itself along an axis."""

from collections.abc import Mapping, Sequence

from harness.analysis.comparison import remarks
from harness.analysis.comparison.axis import NamesFor, along, value_of
from harness.analysis.comparison.published import compare_imported
from harness.analysis.comparison.result import Comparison, Row
from harness.analysis.comparison.sides import Layouts, SideCell, compared, side_cells, verdicts_of
from harness.analysis.estimates.verdict import Correction, Margins
from harness.environment import Change, Fact, difference
from harness.errors import StorageError, UsageError
from harness.record import Run, RunManifest
from harness.record.validation import ValidationRecord
from harness.spec.axes import OF_OWN_STEP
from harness.spec.cell import cell_names
from harness.spec.settings import SETTINGS
from harness.spec.text import text_of

COMPARED = tuple(key for key, setting in SETTINGS.items() if setting.changes_timings)
"""Settings of a sweep that are in no cell's identity and may still change its timings."""
_MOST_NAMED = 3


def compare_runs(
    a: Run,
    b: Run,
    margins: Margins,
    *,
    correction: Correction = "fdr",
    across_machines: bool = False,
    validation: ValidationRecord | None = None,
) -> Comparison:
    """Every cell that both runs have, by Welch: runs share no groups, whatever their groups are called.

    UsageError when the runs are one or not both sweeps; StorageError when they have no cell in common, when
    their machines differ in what decides speed (unless `across_machines`), or when a record was edited.
    """
    if a.manifest.run_id == b.manifest.run_id:
        raise UsageError(f"RUN_B: '{b.manifest.run_id}' is the same run as RUN_A; --along AXIS compares its own cells")
    measured = [run for run in (a, b) if run.manifest.what.kind.measured]
    for run in measured:
        _expect_comparable(run)
    if len(measured) < 2:
        return compare_imported(a, b, margins, correction, across_machines)
    changes = changes_between(a.manifest, b.manifest)
    if not across_machines:
        _refuse(changes)
    return _compared_runs(a, b, margins, correction, changes, validation)


def _compared_runs(
    a: Run,
    b: Run,
    margins: Margins,
    correction: Correction,
    changes: tuple[Change, ...],
    validation: ValidationRecord | None,
) -> Comparison:
    """Two sweeps that may be compared, cell by cell."""
    of_a, of_b = side_cells(a, "A/"), side_cells(b, "B/")
    common = [cell_id for cell_id in of_a if cell_id in of_b]
    if not common:
        raise _nothing_common(of_a, of_b)
    names = cell_names([side.trials.cell for side in {**of_a, **of_b}.values()])
    pairs = [(of_a[cell_id], of_b[cell_id]) for cell_id in common]
    rows = _rows([names[cell_id] for cell_id in common], pairs, None, margins, correction)
    drift_known = validation is not None and validation.knows_drift
    said = [
        *remarks.on_runs({"A": a, "B": b}),
        *remarks.on_times(a.manifest, b.manifest, changes, drift_known),
        *remarks.on_validation(validation, margins, unpaired=True),
        *remarks.on_rows(rows, one_cell=True),
    ]
    return Comparison(
        kind="runs",
        title_a=a.manifest.run_id,
        title_b=b.manifest.run_id,
        margins=margins,
        correction=correction,
        rows=rows,
        only_a=tuple(names[cell_id] for cell_id in of_a if cell_id not in of_b),
        only_b=tuple(names[cell_id] for cell_id in of_b if cell_id not in of_a),
        changes=changes,
        validation=validation,
        remarks=tuple(said),
        manifests=(a.manifest, b.manifest),
    )


def compare_along(
    run: Run,
    axis: str,
    margins: Margins,
    *,
    base: str | None = None,
    correction: Correction = "fdr",
    validation: ValidationRecord | None = None,
    names_for: NamesFor | None = None,
) -> Comparison:
    """Cells of one run that are equal but for `axis`: each (B) against the one at the base value (A).

    By the layout of all cells of the run, as the ops of its report are. `base` is a value of the axis; without
    it the first of the spec, and for cross_device_op the engine's own default; of either any spelling is known with
    `names_for`. UsageError names the axis or the value.
    """
    _expect_comparable(run)
    sides = side_cells(run)
    chosen = along(run.manifest, [side.trials.cell for side in sides.values()], axis, base, names_for)
    names = cell_names([side.trials.cell for side in sides.values()], without=chosen.axis)
    labels = [f"{names[a.cell_id]}: {chosen.axis} {chosen.base} → {value_of(b, chosen.axis)}" for a, b in chosen.pairs]
    pairs = [(sides[a.cell_id], sides[b.cell_id]) for a, b in chosen.pairs]
    rows = _rows(labels, pairs, Layouts.of(sides.values()), margins, correction)
    said = [
        *remarks.on_runs({"A": run}),
        *remarks.on_validation(validation, margins, unpaired=False),
        *remarks.on_rows(rows, one_cell=False),
    ]
    others = [value for value in chosen.values if value != chosen.base]
    return Comparison(
        kind="along",
        title_a=f"{chosen.axis}={chosen.base}",
        title_b=f"{chosen.axis}={' or '.join(others)}",
        margins=margins,
        correction=correction,
        rows=rows,
        only_b=tuple(names[cell.cell_id] for cell in chosen.alone),
        validation=validation,
        remarks=tuple(said),
        manifests=(run.manifest, run.manifest),
    )


def _rows(
    names: Sequence[str],
    pairs: Sequence[tuple[SideCell, SideCell]],
    layouts: Layouts | None,
    margins: Margins,
    correction: Correction,
) -> tuple[Row, ...]:
    verdicts = verdicts_of([compared(a, b, layouts) for a, b in pairs], margins, correction)
    return tuple(Row(name, a.trials, b.trials, both) for name, (a, b), both in zip(names, pairs, verdicts, strict=True))


def _expect_comparable(run: Run) -> None:
    """UsageError where cells of such a run are not compared, StorageError where those of this one are not yet."""
    name = run.manifest.run_id
    if (why := run.manifest.what.kind.refusal(name)) is not None:
        raise UsageError(f"RUN: {why}")
    resume = f"`python -m harness sweep --resume {name}`"
    if not run.trials:
        raise StorageError(
            f"'{run.path}' holds no trial yet: there is nothing to compare; {resume} measures what it planned"
        )
    if run.live:
        raise StorageError(f"'{run.path}' is still being measured: a sweep has no verdict before it is finished")
    if run.manifest.status != "finished":
        raise StorageError(f"'{run.path}' did not finish, and has no verdict before that; {resume} runs the rest")


def changes_between(a: RunManifest, b: RunManifest) -> tuple[Change, ...]:
    """Of machine, software and settings: what forbids a comparison first, then the machine, then the software."""
    once = [key for key in sorted(OF_OWN_STEP) if _was_setting(a, key) or _was_setting(b, key)]
    found = difference(_facts(a, once), _facts(b, once))
    first = ("machine.", "package.", "python.", "sweep.")
    rank = {change.key: next((i for i, p in enumerate(first) if change.key.startswith(p)), 9) for change in found}
    return tuple(sorted(found, key=lambda change: (change.severity != "refuse", rank[change.key])))


def _facts(manifest: RunManifest, once: Sequence[str]) -> dict[str, Fact]:
    """Of the run; `once` are the axes that were a setting of either run, and are shown of both."""
    settings: dict[str, Fact] = {f"sweep.{name}": getattr(manifest.sweep, name) for name in COMPARED}
    settings |= {f"sweep.{key}": text_of(key, getattr(manifest.sweep, key)) for key in once}
    return {**manifest.facts, **settings, "harness.version": manifest.harness_version}


def _was_setting(manifest: RunManifest, key: str) -> bool:
    """Whether the axis was a setting of the run when it was measured: the spec has a value of it, and no cell has."""
    return not set(getattr(manifest.sweep, key)) & {getattr(cell, key, None) for cell in manifest.cells}


def _refuse(changes: Sequence[Change]) -> None:
    refused = [str(change) for change in changes if change.severity == "refuse"]
    if refused:
        more = f" and {len(refused) - _MOST_NAMED} more" if len(refused) > _MOST_NAMED else ""
        raise StorageError(
            f"the runs' machines differ in what decides speed: {'; '.join(refused[:_MOST_NAMED])}{more}; "
            "--across-machines compares them all the same"
        )


def _nothing_common(a: Mapping[str, SideCell], b: Mapping[str, SideCell]) -> StorageError:
    cells_a, cells_b = ([side.trials.cell for side in sides.values()] for sides in (a, b))
    apart = []
    # a key that one side's kind of work lacks says nothing of what its cells are
    keys_a, keys_b = (
        dict.fromkeys(key for cell in cells for key in type(cell).model_fields) for cells in (cells_a, cells_b)
    )
    for key in (key for key in keys_a if key in keys_b):
        left, right = (list(dict.fromkeys(str(cell.get(key)) for cell in cells)) for cells in (cells_a, cells_b))
        if not set(left) & set(right) and key != "global_batch_size":
            apart.append(f"{key} is {_some(left)} in A and {_some(right)} in B")
    return StorageError(
        f"the runs have no cell in common: A has {_some([cell.label for cell in cells_a])}; "
        f"B has {_some([cell.label for cell in cells_b])}" + (f" ({'; '.join(apart)})" if apart else "")
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
