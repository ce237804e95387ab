"""What a comparison is: rows with their verdicts, and all that must be said beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.analysis.cells import CellTrials
from harness.analysis.comparison.clocks import Verdicts
from harness.analysis.estimates.verdict import Correction, Margins, Verdict
from harness.environment import Change
from harness.record.manifest import RunManifest
from harness.record.trial import MEASURED
from harness.record.validation import ValidationRecord

ComparisonKind = Literal["runs", "along", "ab", "published"]
LOST = ("wrong_result", "crashed", "timeout", "out_of_memory")
"""What a cell that was right must not become."""
WORST_FIRST: tuple[Verdict, ...] = ("slower", "undecided", "equivalent", "faster", "invalid")


@dataclass(frozen=True)
class Row:
    """One comparison."""

    name: str
    """The cell's label, or for an axis what is held fixed and the two values."""
    a: CellTrials
    b: CellTrials
    verdicts: Verdicts

    @property
    def unproved(self) -> bool:
        """Whether a side is unproved: the verdict is then about speed alone."""
        return self.a.unproved is not None or self.b.unproved is not None

    @property
    def disagreement(self) -> str | None:
        """What it means when the clocks differ; None where a side ran on an accelerator: its CPU time is the host's."""
        return self.verdicts.disagreement if self.on_processors else None

    @property
    def on_processors(self) -> bool:
        """Whether both sides computed on processors, so that processor time is all of their computing."""
        return self.a.device.on_processors and self.b.device.on_processors


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that is said of two sides. All ratios are B over A."""

    kind: ComparisonKind
    title_a: str
    title_b: str
    margins: Margins
    correction: Correction
    rows: tuple[Row, ...]
    only_a: tuple[str, ...] = ()
    """Names of cells that A alone has."""
    only_b: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    """How the environments differ, what forbids a comparison first."""
    validation: ValidationRecord | None = None
    """Of this machine, when there is one."""
    remarks: tuple[str, ...] = ()
    blocks: int = 0
    """Complete pairs behind an `ab`; 0 else."""
    manifests: tuple[RunManifest, RunManifest]
    """Of A's run and of B's; twice the same within one run."""

    @property
    def of_one_run(self) -> bool:
        """Whether both sides were measured in one run."""
        a, b = self.manifests
        return a.run_id == b.run_id

    @property
    def measured(self) -> bool:
        """Whether a side was measured, and can be again: published figures stay what they are."""
        return any(manifest.what.kind.measured for manifest in self.manifests)

    @property
    def unasked(self) -> tuple[Change, ...]:
        """How the environments differ beside what A and B are."""
        return tuple(change for change in self.changes if change.severity != "asked")

    @property
    def verdict(self) -> Verdict:
        """The worst of the rows; `invalid` only when no row is valid."""
        return next(iter(self.counts), "invalid")

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Rows by verdict, the worst first; verdicts that no row has are left out."""
        all_of = [row.verdicts.wall.verdict for row in self.rows]
        return {verdict: all_of.count(verdict) for verdict in WORST_FIRST if verdict in all_of}

    def exit_code(self, strict: bool = False) -> int:
        """1 when any row is slower or B lost a cell, else 4 when none is valid, else 3 or 0.

        A cell that was measured in A and in B computes the wrong thing, crashes, hangs or runs out of memory is a
        regression like a slower one. 3 is under `strict` for an undecided row, for one whose B could not be proved
        where A could, and for a cell that A alone has or that was measured in A alone.
        """
        found = set(self.counts)
        of_b = {row.b.status for row in self.rows if row.a.status in MEASURED} - set(MEASURED)
        if "slower" in found or of_b & set(LOST):
            return 1
        if not found - {"invalid"}:
            return 4
        less_proved = any(row.a.status == "ok" and row.b.status == "unproved" for row in self.rows)
        return 3 if strict and ("undecided" in found or less_proved or of_b or self.only_a) else 0
