"""The decision of an `ab` run, from its records."""

from collections.abc import Mapping, Sequence

from harness.analysis.cells import CellTrials, read_cell
from harness.analysis.comparison import remarks
from harness.analysis.comparison.axis import cell_names
from harness.analysis.comparison.pairs import Pair, estimate_of, pairs_of, pilot_count
from harness.analysis.comparison.result import Comparison, Row
from harness.analysis.comparison.sides import Compared, check_records, verdicts_of, why_no_comparison
from harness.analysis.estimates.verdict import Margins
from harness.analysis.summary import pilot_blocks_of
from harness.environment import Change, Fact
from harness.errors import StorageError, UsageError
from harness.record import Run
from harness.record.manifest import ComparisonRecord, SideRecord
from harness.record.validation import ValidationRecord
from harness.spec.cell import Cell


def comparison_of_ab(
    run: Run, margins: Margins | None = None, validation: ValidationRecord | None = None
) -> Comparison:
    """The two sides of an `ab` run, paired over blocks, by the margins it was planned for.

    After a second stage the interval keeps the s0 and the t of the first (Stein 1945). UsageError on a run
    that is no comparison; StorageError when its manifest or a record contradicts itself.
    """
    a, b = _sides(run)
    planned = _planned_margins(run)
    margins = margins or planned
    cells = _cells(run)
    pairs = pairs_of(run.trials)
    read_a, read_b = _read(run, a, cells), _read(run, b, cells)
    verdicts = verdicts_of([_compared(run, read_a, read_b, pairs)], margins, "none")[0]
    names = cell_names([cells[a.cell_id], cells[b.cell_id]])
    row = Row(" → ".join(dict.fromkeys((names[a.cell_id], names[b.cell_id]))), read_a, read_b, verdicts)
    said = [
        *run.manifest.part(ComparisonRecord).remarks,
        *remarks.on_runs({"The run": run}),
        *remarks.on_blocks(run, pairs),
        *_on_margins(margins, planned),
        *remarks.on_validation(validation, margins, unpaired=False),
        *remarks.on_rows([row], one_cell=False),
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
        blocks=len(pairs),
        manifests=(run.manifest, run.manifest),
    )


def _compared(run: Run, a: CellTrials, b: CellTrials, pairs: Sequence[Pair]) -> Compared:
    reason = why_no_comparison(a, b)
    if reason is not None:
        return Compared(None, reason=reason)
    if not pairs:
        return Compared(None, reason="no block gave a pair: A and B were never both measured in one group")
    plans = [plan for plan in run.manifest.plans if plan.stage == 2]
    second = {plan.first_block + offset for plan in plans for offset in range(len(plan.blocks))}
    pilot = pilot_count(pairs, second)
    cpu = [value for pair in pairs if (value := pair.cpu) is not None]
    return Compared(
        estimate_of([pair.wall for pair in pairs], pilot),
        estimate_of(cpu, pilot) if len(cpu) == len(pairs) else None,
    )


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


def _read(run: Run, side: SideRecord, cells: Mapping[str, Cell]) -> CellTrials:
    trials = [trial for trial in run.trials if trial.side == side.name]
    groups = [group for plan in run.manifest.plans for block in plan.blocks for group in block]
    planned = sum(group.count(side.name) for group in groups)
    return read_cell(cells[side.cell_id], trials, planned, pilot_blocks_of(run.manifest))


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
    """How the sides' environments differ: what the comparison is about, or its first suspect."""
    left, right = _facts(a), _facts(b)
    return tuple(
        Change(key, left.get(key), right.get(key), "note")
        for key in dict.fromkeys([*left, *right])
        if left.get(key) != right.get(key)
    )


def _facts(side: SideRecord) -> dict[str, Fact]:
    """Versions, variables and settings of one side."""
    facts: dict[str, Fact] = {f"version.{name}": version for name, version in side.versions.items()}
    facts |= {"python": side.python, "revision": side.revision, "commit": side.commit}
    facts |= {f"env.{name}": value for name, value in side.environment.items()}
    return facts | {f"setting.{name}": value for name, value in side.settings.items()}
