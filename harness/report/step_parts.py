"""What is said of steps that were taken apart, the same wherever it is read: sentences and tables."""

from dataclasses import dataclass
from pathlib import Path

from harness.analysis import RunSummary, summarise
from harness.analysis.explain import Explanation, explanations_of
from harness.analysis.limits import CellRate, cell_rates
from harness.analysis.tries import Try, tries_of
from harness.record.explain import WHOLE, ExplainPlan
from harness.record.reading import Run
from harness.report.limits import known_limits, rates_words
from harness.report.tables.explain import explain_lines, explain_tables
from harness.report.tables.table import Table
from harness.report.tables.tries import try_lines, try_tables


@dataclass(frozen=True)
class StepsExplained:
    """Of a run what is known of its steps, of their limits and of the levers that were tried."""

    explanations: tuple[Explanation, ...]
    rates: tuple[CellRate, ...]
    tries: tuple[Try, ...]

    @property
    def lines(self) -> list[str]:
        """What it comes to, in sentences."""
        limits = [words] if (words := rates_words(self.rates)) else []
        return [*explain_lines(self.explanations), *limits, *try_lines(self.tries)]

    @property
    def tables(self) -> list[Table]:
        """The parts of each step, and what was tried."""
        return [*explain_tables(self.explanations), *try_tables(self.tries)]


def explained(run: Run, results: Path) -> StepsExplained:
    """Of a run of `explain`, with the machine's limits and validation that are in `results`."""
    return StepsExplained(explanations_of(run), tuple(step_rates(run, results)), tries_of(run, results))


def whole_steps(run: Run) -> Run:
    """The run without its instruments, which are no trials of its cells."""
    return run.of_side(WHOLE, {family.cell_id for family in run.manifest.part(ExplainPlan).families})


def summary_of_steps(run: Run) -> RunSummary:
    """The summary of the whole steps alone."""
    whole = whole_steps(run)
    return summarise(whole.manifest, whole.trials, whole.rank_unproved)


def step_rates(run: Run, results: Path) -> list[CellRate]:
    """How fast the whole steps' products and convolutions are, where the machine's limits are in `results`."""
    rates = cell_rates(summary_of_steps(run).cells, known_limits(run, results), run.manifest.sweep.launcher)
    return [rate for rate in rates if rate.roof is not None]
