"""The decision of an `ab` run, from its records."""

import functools
from collections.abc import Iterator, Mapping, Sequence

from harness.analysis.cells import CellTrials, read_cell
from harness.analysis.comparison import remarks
from harness.analysis.comparison.pairs import Estimator, Pair, by_clock, estimate_of, pairs_of, pilot_count
from harness.analysis.comparison.result import Comparison, Row
from harness.analysis.comparison.sides import Compared, check_records, verdicts_of, why_no_comparison
from harness.analysis.comparison.standing import Standing, standing_of
from harness.analysis.estimates.verdict import Margins
from harness.analysis.summary import pilot_blocks_of
from harness.analysis.trends import Trends, trends_of
from harness.environment import Change, Fact, Severity
from harness.errors import StorageError, UsageError
from harness.record import Run
from harness.record.manifest import ComparisonRecord, SideRecord
from harness.record.validation import ValidationRecord
from harness.spec.cell import cell_names
from harness.spec.engines import only_engine_of
from harness.spec.work import Cell


def comparison_of_ab(
    run: Run, margins: Margins | None = None, validation: ValidationRecord | None = None
) -> Comparison:
    """The two sides of an `ab` run, paired over blocks, by the margins it was planned for.

    Of a plan with looks the verdict and the intervals are those of the look at which it stopped, or of the last one
    that is complete: what was measured since is not looked at. Of an older one, in two stages (Stein 1945), there is a
    verdict once it is finished. UsageError on a run that is no comparison; StorageError when its manifest or a record
    contradicts itself.
    """
    a, b = _sides(run)
    planned = _planned_margins(run)
    margins = margins or planned
    cells = _cells(run)
    pairs = pairs_of(run.trials)
    standing = _standing(run, planned)
    row = _row(run, (a, b), cells, pairs, standing, margins)
    said = [
        *run.manifest.part(ComparisonRecord).remarks,
        *remarks.on_runs({"The run": run}),
        *remarks.on_blocks(run, pairs),
        *remarks.on_looks(standing),
        *remarks.on_windows(standing, margins),
        *_on_margins(margins, planned),
        *remarks.on_validation(validation, margins, unpaired=False),
        *remarks.on_rows([row], one_cell=False, alone=True),
    ]
    return Comparison(
        kind="ab",
        title_a=a.label,
        title_b=b.label,
        margins=margins,
        correction="none",
        rows=(row,),
        changes=_changes(a, b),
        validation=validation,
        remarks=tuple(said),
        blocks=len(pairs if standing is None else standing.pairs),
        manifests=(run.manifest, run.manifest),
    )


def _row(
    run: Run,
    sides: tuple[SideRecord, SideRecord],
    cells: Mapping[str, Cell],
    pairs: Sequence[Pair],
    standing: Standing | None,
    margins: Margins,
) -> Row:
    """The two sides as they were measured, with the verdicts by `margins`."""
    trends = trends_of(run.trials)
    a, b = (_read(run, side, cells, trends) for side in sides)
    verdicts = verdicts_of([_compared(run, a, b, pairs, standing)], margins, "none")[0]
    ids = [side.cell_id for side in sides]
    names = cell_names([cells[cell_id] for cell_id in ids])
    return Row(" → ".join(dict.fromkeys(names[cell_id] for cell_id in ids)), a, b, verdicts)


def _standing(run: Run, planned: Margins) -> Standing | None:
    record = run.manifest.looks
    if record is None:
        return None
    standing = standing_of(run.trials, range(record.after[-1]), ("a", "b"), record, planned)
    return standing.over() if run.manifest.status == "finished" and not run.live else standing


def _compared(run: Run, a: CellTrials, b: CellTrials, pairs: Sequence[Pair], standing: Standing | None) -> Compared:
    reason = why_no_comparison(a, b)
    if reason is not None:
        return Compared(None, reason=reason)
    if standing is None:
        return _of_stages(run, pairs)
    if not standing.number:
        first = standing.looks.after[0]
        return Compared(None, reason=f"no verdict before the first look, which is after {first} blocks", pending=True)
    return _estimated(standing.pairs, standing.estimate)


def _of_stages(run: Run, pairs: Sequence[Pair]) -> Compared:
    """By a plan of one or two stages, which no newer run has."""
    if run.manifest.status != "finished":
        return Compared(None, reason="no verdict before its plan is complete, which has no looks", pending=True)
    plans = [plan for plan in run.manifest.plans if plan.stage == 2]
    second = {plan.first_block + offset for plan in plans for offset in range(len(plan.blocks))}
    return _estimated(pairs, functools.partial(estimate_of, pilot=pilot_count(pairs, second)))


def _estimated(pairs: Sequence[Pair], estimate: Estimator) -> Compared:
    if not pairs:
        return Compared(None, reason="no block gave a pair: A and B were never both measured in one group")
    return Compared(*by_clock(pairs, estimate))


def _sides(run: Run) -> tuple[SideRecord, SideRecord]:
    record = run.manifest.what
    if not isinstance(record, ComparisonRecord):
        raise UsageError(
            f"RUN: '{run.manifest.run_id}' is no `ab` run; give a second run, or --along AXIS to compare its cells"
        )
    check_records(run)
    by_name = {side.name: side for side in record.sides}
    if len(by_name) != 2:
        raise StorageError(f"'{run.path}': run.json: comparison.sides: expected one side a and one side b")
    return by_name["a"], by_name["b"]


def _cells(run: Run) -> dict[str, Cell]:
    """The cells by id; StorageError where a side's cell is not there, or its trials are of another."""
    record = run.manifest.part(ComparisonRecord)
    cells = {cell.cell_id: cell for cell in run.manifest.cells}
    for side in record.sides:
        if side.cell_id not in cells:
            raise StorageError(f"'{run.path}': run.json: cell {side.cell_id} of side {side.name} is not in its cells")
        for trial in run.trials:
            if trial.side == side.name and trial.cell_id != side.cell_id:
                raise StorageError(
                    f"'{run.path}': block {trial.block}: side {side.name} is cell {side.cell_id} in run.json but "
                    f"{trial.cell_id} in trials.jsonl: the records were edited"
                )
    return cells


def _read(run: Run, side: SideRecord, cells: Mapping[str, Cell], trends: Trends) -> CellTrials:
    trials = [trial for trial in run.trials if trial.side == side.name]
    groups = [group for plan in run.manifest.plans for block in plan.blocks for group in block]
    planned = sum(group.count(side.name) for group in groups)
    cell, trend = cells[side.cell_id], trends.get((side.cell_id, side.name))
    device = run.manifest.device_of(cell)
    return read_cell(cell, trials, planned, device, pilot_blocks_of(run.manifest), trend=trend)


def _planned_margins(run: Run) -> Margins:
    record = run.manifest.part(ComparisonRecord)
    try:
        return Margins(record.delta, record.epsilon, record.margins_source)
    except UsageError as error:
        raise StorageError(f"'{run.path}': run.json: comparison: {error}") from None


def _on_margins(margins: Margins, planned: Margins) -> list[str]:
    if (margins.delta, margins.epsilon) == (planned.delta, planned.epsilon):
        return []
    return [
        f"The run was planned for delta {100 * planned.delta:.3g} % and epsilon {100 * planned.epsilon:.3g} %; it is "
        "judged here by margins that were chosen after it was measured."
    ]


def _changes(a: SideRecord, b: SideRecord) -> tuple[Change, ...]:
    """How the sides' environments differ: what was not asked for first, since the difference could be that. Who asks
    for another engine asks for its packages."""
    given, found = (_given(a), _given(b)), (_versions(a), _versions(b))
    one_engine = only_engine_of(a.sweep) == only_engine_of(b.sweep)
    return (*_differing(*found, "note" if one_engine else "asked"), *_differing(*given, "asked"))


def _differing(a: Mapping[str, Fact], b: Mapping[str, Fact], severity: Severity) -> Iterator[Change]:
    for key in dict.fromkeys([*a, *b]):
        if a.get(key) != b.get(key):
            yield Change(key, a.get(key), b.get(key), severity)


def _versions(side: SideRecord) -> dict[str, Fact]:
    return {f"version.{name}": version for name, version in side.versions.items()}


def _given(side: SideRecord) -> dict[str, Fact]:
    """Interpreter, revision, variables and settings of one side."""
    facts: dict[str, Fact] = {"python": side.python, "revision": side.revision, "commit": side.commit}
    facts |= {f"env.{name}": value for name, value in side.environment.items()}
    return facts | {f"setting.{name}": value for name, value in side.settings.items()}
