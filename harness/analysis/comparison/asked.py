"""The comparison that was asked for: of two runs, of one along an axis, or an `ab` run's own."""

from dataclasses import dataclass
from pathlib import Path

from harness.analysis.comparison.ab import comparison_of_ab
from harness.analysis.comparison.axis import NamesFor
from harness.analysis.comparison.margins import choose_margins
from harness.analysis.comparison.result import Comparison
from harness.analysis.comparison.runs import compare_along, compare_runs
from harness.analysis.estimates.verdict import Correction, Margins
from harness.errors import UsageError
from harness.record.reading import Run
from harness.record.validation import ValidationRecord, find_validation


@dataclass(frozen=True)
class ComparisonAsked:
    """What is said beside the runs. Shares that are None are chosen (`choose_margins`)."""

    along: str | None = None
    base: str | None = None
    delta: float | None = None
    epsilon: float | None = None
    correction: Correction = "fdr"
    across_machines: bool = False
    names: tuple[str, str] = ("RUN_A", "RUN_B")
    """What errors call the two runs."""
    of_ones_own: str = "give --delta"
    names_for: NamesFor | None = None
    """Without it values of an axis are known by the spelling alone that the cells have."""

    def comparison(self, a: Run, b: Run | None, results: Path, no_second: str = "") -> Comparison:
        """B against A, or what A alone tells; `results` is where the machine's validation is looked for.

        UsageError where a run has no throughput or there is nothing to compare A with, which is `no_second`, and on
        what margins and axes refuse.
        """
        for name, run in zip(self.names, (a, b), strict=True):
            if run is not None and not (kind := run.manifest.what.kind).has_trials:
                raise UsageError(
                    f"{name}: '{run.path.name}' is a run of {kind.verb}, which has no throughput to compare"
                )
        validation = known_validation(results, a, *([] if b is None else [b]))
        if b is None and self.along is None:
            if not a.manifest.what.kind.own_verdict:
                raise UsageError(no_second)
            given = self.delta is not None or self.epsilon is not None
            return comparison_of_ab(a, self._margins(validation, unpaired=False) if given else None, validation)
        margins = self._margins(validation, unpaired=b is not None)
        if b is not None:
            across = self.across_machines
            return compare_runs(
                a, b, margins, correction=self.correction, across_machines=across, validation=validation
            )
        assert self.along is not None
        return compare_along(
            a,
            self.along,
            margins,
            base=self.base,
            correction=self.correction,
            validation=validation,
            names_for=self.names_for,
        )

    def _margins(self, validation: ValidationRecord | None, unpaired: bool) -> Margins:
        return choose_margins(
            validation, unpaired=unpaired, delta=self.delta, epsilon=self.epsilon, of_ones_own=self.of_ones_own
        )


def known_validation(results: Path, *runs: Run) -> ValidationRecord | None:
    """The newest validation in `results` of the machine that measured the runs; a noise floor of one machine says
    nothing of two."""
    machines = {run.manifest.facts.get("machine.id") for run in runs}
    return find_validation(results, machines.pop() if len(machines) == 1 else None)
