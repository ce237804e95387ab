"""Which levers of `explain --try` held: the verdict of each `ab` run that is on record beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.comparison import Comparison, comparison_of_ab
from harness.analysis.explain import Explanation
from harness.errors import HarnessError, NothingMeasured
from harness.record.explain import ExplainPlan, TryRecord
from harness.record.reading import Run, load_run
from harness.record.validation import find_validation
from harness.spec.work import Cell


@dataclass(frozen=True)
class Try:
    """A lever that was tried."""

    record: TryRecord
    cell: Cell
    comparison: Comparison | None
    """None where there is no run to read."""
    reason: str | None
    """Why there is no verdict; None where there is one."""

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, `equivalent`, `undecided` or `invalid`; `not measured` where there is no run."""
        return "not measured" if self.comparison is None else self.comparison.verdict

    @property
    def judged(self) -> bool:
        """Whether there is a verdict, be it that nothing is decided."""
        return self.reason is None

    @property
    def faster(self) -> bool:
        """Whether the cell is faster with it."""
        return self.judged and self.verdict == "faster"


def nothing_told(found: Sequence[Explanation], tries: Sequence[Try]) -> NothingMeasured | None:
    """Why a run of `explain` says nothing: no cell has a block in which all took turns, or none of the levers that were
    to be tried has a verdict. None where it does."""
    if all(one.blocks == 0 for one in found):
        reasons = [reason for one in found for reason in one.lacking.values()]
        return NothingMeasured(f"nothing was measured: {next(iter(reasons), 'no block is complete')}")
    if tries and not any(one.judged for one in tries):
        return NothingMeasured(f"no lever could be measured: {tries[0].record.setting}: {tries[0].reason}")
    return None


def tries_of(run: Run, results: Path) -> tuple[Try, ...]:
    """Those of a run of `explain`, in the order in which they were made; their runs lie beside it.

    `results` has the validation of this machine, when there is one.
    """
    plan, cells = run.manifest.part(ExplainPlan), {cell.cell_id: cell for cell in run.manifest.cells}
    return tuple(read_try(record, cells[record.cell_id], run.path.parent, results) for record in plan.tries)


def read_try(record: TryRecord, cell: Cell, beside: Path, results: Path) -> Try:
    """One of them, whose run is in the folder `beside`."""
    if record.run_id is None:
        return Try(record, cell, None, record.reason or "its run was not begun")
    try:
        run = load_run(beside / record.run_id)
        comparison = comparison_of_ab(run, validation=find_validation(results, run.manifest.facts.get("machine.id")))
    except HarnessError as error:
        return Try(record, cell, None, record.reason or str(error))
    wall = comparison.rows[0].verdicts.wall
    unfinished = "its run has not finished" if run.manifest.status != "finished" else None
    none = wall.reason or unfinished
    return Try(record, cell, comparison, none and (record.reason or none))
