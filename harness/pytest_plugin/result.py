"""What the gate found out about one cell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.analysis.cells import CellTrials, Problem
from harness.analysis.comparison.clocks import CpuVerdict, Verdicts
from harness.analysis.comparison.result import LOST, Comparison, Row
from harness.analysis.comparison.sides import Compared, verdicts_of
from harness.analysis.estimates.intervals import Interval
from harness.analysis.estimates.verdict import Margins, judge
from harness.report.words.text import STATUS_WORDS
from harness.spec.quantity import EXAMPLES, Quantity

GateEnd = Literal["slower", "faster", "equivalent", "undecided", "failed", "skipped", "saved", "proved", "unproved"]
"""`failed`: there is no valid measurement of the working tree; `skipped`: nothing to compare it with;
`unproved`: nothing was found wrong in a cell that was to be proved, but a fault could have gone unseen."""
HERE = "the working tree"
EVIDENCE_LINES = 8
"""The end of what a trial that crashed wrote says most."""
FAILURES = 2
"""Trials of the working tree that fail where none of the other side does: one may be the runner's."""


@dataclass(frozen=True)
class GateResult:
    """One cell: how it ended and everything that it rests on.

    `ratio` is the throughput of the working tree over what it is measured against: below 1 it is slower.
    """

    name: str
    """The cell's label."""
    end: GateEnd
    reason: str = ""
    """Why it failed, was skipped or is unproved."""
    comparison: Comparison | None = None
    """Of this cell alone, judged together with the other cells of the gate; None where nothing was compared."""
    throughput: Interval | None = None
    """Of a cell that was saved, proved or left unproved, in the unit of `quantity`."""
    counted: Quantity = EXAMPLES
    """What its work is counted in, where nothing was compared."""
    again: str = ""
    """The command that measures or compares it again."""
    records: str = ""
    """Where its trials are recorded."""
    believed: Margins | None = None
    """What `slower` must go beyond to be a failure, where that is more than the comparison's own margins."""

    @property
    def quantity(self) -> Quantity:
        """What its work is counted in."""
        return self.counted if self.row is None else self.row.b.cell.work.quantity

    @property
    def row(self) -> Row | None:
        """The comparison's only row."""
        return None if self.comparison is None else self.comparison.rows[0]

    @property
    def verdicts(self) -> Verdicts | None:
        """What wall time and processor time say, with all figures."""
        return None if self.row is None else self.row.verdicts

    @property
    def unproved(self) -> str | None:
        """What could not be proved of the working tree's cell; None where all was, or nothing was measured."""
        if self.row is not None:
            return self.row.b.unproved
        return self.reason if self.end == "unproved" else None

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, `equivalent`, `undecided`, or how else it ended."""
        return self.end

    def fails(self, strict: bool) -> bool:
        """Whether its tests fail; `strict`: one without a verdict fails, too."""
        return self.end in ("slower", "failed") or (strict and self.end == "undecided")

    @property
    def ratio(self) -> float | None:
        """Throughput of the working tree over the other side's."""
        return None if self.verdicts is None or self.verdicts.wall.ratio is None else self.verdicts.wall.ratio.value

    @property
    def ci95(self) -> tuple[float, float] | None:
        """The ratio's 95 % interval, not widened for the number of cells; None when it cannot be known."""
        ratio = None if self.verdicts is None else self.verdicts.wall.ratio
        return None if ratio is None or ratio.low is None or ratio.high is None else (ratio.low, ratio.high)

    @property
    def cpu(self) -> CpuVerdict | None:
        """Whether the same work takes `more` or `less` processor time; None where it was not recorded."""
        return None if self.verdicts is None else self.verdicts.cpu_verdict


def compared_result(
    name: str, comparison: Comparison, again: str, records: str, believed: Margins | None = None
) -> GateResult:
    """The result of a comparison of one row, judged by itself; `judged_together` comes after it.

    A wrong answer has no throughput, so a working tree that computes the wrong thing has failed, and so has one that
    fails again and again where the other side does not. Without a measurement of the other side there is nothing to
    be slower than.
    """
    row = comparison.rows[0]
    result = GateResult(name, "undecided", comparison=comparison, again=again, records=records, believed=believed)
    failed = _failures(row.b)
    if row.b.measured is not None and sum(it.trials for it in failed) >= FAILURES and not _failures(row.a):
        return replace(result, end="failed", reason=_told(row.b, HERE, failed[0]), comparison=None)
    if row.b.measured is None:
        return replace(result, end=end_of(row.b), reason=why_not(row.b, HERE), comparison=None)
    if row.a.measured is None:
        reason = f"there is nothing to compare with: {why_not(row.a, comparison.title_a)}"
        return replace(result, end="skipped", reason=reason, comparison=None)
    return result


def end_of(cell: CellTrials) -> GateEnd:
    """How a test ends whose cell was not measured in the working tree: what cannot run here is no failure."""
    return "skipped" if cell.status == "unsupported" else "failed"


def why_not(cell: CellTrials, where: str) -> str:
    """Why a cell has no measurement, with the evidence below the first line."""
    problem = next((item for item in cell.problems if item.status == cell.status), None)
    return f"{where}: {STATUS_WORDS[cell.status]}" if problem is None else _told(cell, where, problem)


def _failures(cell: CellTrials) -> list[Problem]:
    return [problem for problem in cell.problems if problem.status in LOST]


def _told(cell: CellTrials, where: str, problem: Problem) -> str:
    lines = [f"{where}: {STATUS_WORDS[problem.status]}, {problem.trials} of {cell.trials} trials: {problem.reason}"]
    lines += [f"  {check}: {text}" for check, text in problem.details]
    evidence = (problem.evidence or "").splitlines()[-EVIDENCE_LINES:]
    return "\n".join([*lines, *(f"  {line}" for line in evidence)])


def judged_together(results: Sequence[GateResult]) -> list[GateResult]:
    """The results in their order, verdicts of those that were compared corrected for their number (Holm 1979).

    The cells were named before any of them was measured, and one false alarm among them is one too many. A
    comparison without a pair is `undecided`: it shows no regression, and no proof of its absence.
    """
    rows = [(index, result.comparison) for index, result in enumerate(results) if result.comparison is not None]
    judged = list(results)
    if not rows:
        return judged
    margins = rows[0][1].margins
    items = [_estimates(comparison.rows[0].verdicts) for _, comparison in rows]
    for (index, comparison), verdicts in zip(rows, verdicts_of(items, margins, "holm"), strict=True):
        row = replace(comparison.rows[0], verdicts=verdicts)
        end: GateEnd = "undecided" if verdicts.wall.verdict == "invalid" else verdicts.wall.verdict
        if end == "slower" and not _is_believed(results[index], verdicts):
            end = "undecided"
        together = replace(comparison, rows=(row,), correction="holm")
        judged[index] = replace(results[index], end=end, comparison=together)
    return judged


def _is_believed(result: GateResult, verdicts: Verdicts) -> bool:
    """Whether a slower working tree is slower by more than the machine's unknown drift, too."""
    estimate = verdicts.wall.estimate
    return result.believed is None or estimate is None or judge(estimate, result.believed).verdict == "slower"


def _estimates(verdicts: Verdicts) -> Compared:
    return Compared(
        verdicts.wall.estimate, None if verdicts.cpu is None else verdicts.cpu.estimate, verdicts.wall.reason
    )
