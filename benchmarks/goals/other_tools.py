"""The decisions of a validation by other tools' own rules, on the same windows.

    python benchmarks/goals/other_tools.py                       of the runs in results/validation, together
    python benchmarks/goals/other_tools.py RUN_FOLDER ...        of these runs

Each rule is written from the tool's source, in our own code, and fed what its user would feed it: per-step
seconds of every window. `docs/protocol.md` pairs the trials of a block and counts trials; these rules do neither.
They are given the windows of sides that took turns, which their own way of measuring (one side after the
other) would not give them, so what they show here is at its best.

- **pyperf** 2.10, `pyperf/_compare.py` (`is_significant_benchs`, `CompareResult`) and `pyperf/_utils.py`
  (`is_significant`, `tscore`, `tdist95conf_level`): all values of all worker processes in one sample a side;
  Student's two-sample t with pooled variance, significant when |t| reaches the 95 % point; the direction is
  that of the means. An exception in the test (no spread, or sides with different numbers of values) counts as
  significant, and so does one value a side. `--min-speed` asks for a least change of the mean besides.
- **asv** 0.6.5, `asv/commands/compare.py` (`_is_result_better`) and `asv/_stats.py` (`is_different`,
  `mann_whitney_u`), which `asv continuous` uses too: changed when the medians differ by more than `--factor`
  (1.1) and the recorded samples differ at p < 0.002 by Mann–Whitney's U, exact up to 20 samples a side and
  normal without continuity correction beyond.
- **pytest-benchmark** 5.3, `pytest_benchmark/utils.py` (`parse_compare_fail`, `PercentageRegressionCheck`):
  `--benchmark-compare-fail=min:5%` fails when the minimum over the rounds is more than 5 % above the stored
  one; `median` and `mean` likewise. It never says faster.
"""

import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from scipy import special, stats

from harness.analysis.estimates.intervals import CONFIDENCE, t_quantile
from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.validation.decisions import Decided, decisions_of
from harness.analysis.validation.summary import grouped, of_two_rounds, validation_of
from harness.errors import HarnessError
from harness.record.reading import Run, load_run
from harness.record.trial import TrialRecord
from harness.record.validation import Rule
from harness.report.tables.validation import tools_table
from harness.report.terminal.table import table_text

KEPT = Path(__file__).parents[2] / "results" / "validation"
Alarm = Literal["slower", "faster"]
Trials = Sequence[Sequence[float]]
"""Per-step seconds of each window, grouped by trial."""


class ToolRule(Protocol):
    """How one tool decides, at one setting of its own options."""

    @property
    def name(self) -> str:
        """The tool and its options, as a user would type them."""

    @property
    def words(self) -> str:
        """The rule in words."""

    def alarm(self, a: Trials, b: Trials) -> Alarm | None:
        """What the tool would say of B against A. HarnessError unless every time is finite and positive."""


@dataclass(frozen=True)
class Pyperf:
    """`pyperf compare_to`: a two-sample t-test on every value of every process."""

    min_speed: float | None = None
    """Percent; None is pyperf's default, no least change."""

    @property
    def name(self) -> str:
        """The command."""
        return "pyperf compare_to" + ("" if self.min_speed is None else f" --min-speed={self.min_speed:g}")

    @property
    def words(self) -> str:
        """The rule in words."""
        least = "" if self.min_speed is None else f", and the means differ by {self.min_speed:g} % or more"
        return f"Student's two-sample t-test at 95 % on all windows of all trials{least}"

    def alarm(self, a: Trials, b: Trials) -> Alarm | None:
        """Significant by |t|, in the direction of the means."""
        values_a, values_b = _pooled(a), _pooled(b)
        ratio = statistics.fmean(values_b) / statistics.fmean(values_a)
        change = (max(ratio, 1 / ratio) - 1) * 100
        if not _pyperf_significant(values_a, values_b) or (self.min_speed is not None and change < self.min_speed):
            return None
        return _direction(ratio)


@dataclass(frozen=True)
class Asv:
    """`asv compare`, `asv continuous`: the medians differ by a factor, and Mann–Whitney's U agrees."""

    factor: float = 1.1
    p_threshold: float = 0.002

    @property
    def name(self) -> str:
        """The command."""
        return f"asv continuous --factor={self.factor:g}"

    @property
    def words(self) -> str:
        """The rule in words."""
        return (
            f"the medians of all windows differ by more than a factor of {self.factor:g}, "
            f"and Mann–Whitney's U says so at p < {self.p_threshold:g}"
        )

    def alarm(self, a: Trials, b: Trials) -> Alarm | None:
        """By median, factor and U. HarnessError with so few windows that asv would not use U at all."""
        values_a, values_b = _pooled(a), _pooled(b)
        smaller, together = min(len(values_a), len(values_b)), len(values_a) + len(values_b)
        if 1 / math.comb(together, smaller) >= self.p_threshold:
            raise HarnessError(f"{smaller} windows on a side are too few for asv's test: expected about six or more")
        ratio = statistics.median(values_b) / statistics.median(values_a)
        if max(ratio, 1 / ratio) <= self.factor:
            return None
        method: Literal["exact", "asymptotic"] = "exact" if max(len(values_a), len(values_b)) <= 20 else "asymptotic"
        found = stats.mannwhitneyu(values_a, values_b, use_continuity=False, method=method)
        return _direction(ratio) if found.pvalue < self.p_threshold else None


@dataclass(frozen=True)
class PytestBenchmark:
    """`--benchmark-compare-fail=FIELD:5%`: one figure of all rounds against the stored one."""

    field: Literal["min", "median", "mean"]
    percent: int = 5

    @property
    def name(self) -> str:
        """The option."""
        return f"pytest-benchmark --benchmark-compare-fail={self.field}:{self.percent}%"

    @property
    def words(self) -> str:
        """The rule in words."""
        words = {"min": "minimum", "median": "median", "mean": "mean"}[self.field]
        return f"the {words} of all windows is more than {self.percent} % larger (never says faster)"

    def alarm(self, a: Trials, b: Trials) -> Alarm | None:
        """`slower` when the field has grown by more than the percentage."""
        figure = _FIELDS[self.field]
        return "slower" if figure(_pooled(b)) / figure(_pooled(a)) * 100 - 100 > self.percent else None


_FIELDS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "median": statistics.median,
    "mean": statistics.mean,
}

RULES: tuple[ToolRule, ...] = (
    Pyperf(),
    Pyperf(min_speed=2),
    Asv(),
    Asv(factor=1.02),
    PytestBenchmark("min"),
    PytestBenchmark("median"),
    PytestBenchmark("mean"),
)
"""pyperf and asv at their defaults and with a threshold of 2 %; pytest-benchmark, which has no default, at the
5 % of its own help text."""


def _pyperf_significant(a: Sequence[float], b: Sequence[float]) -> bool:
    if len(a) != len(b) or len(a) == 1:
        return True
    mean_a, mean_b = statistics.fmean(a), statistics.fmean(b)
    variance = (statistics.variance(a, mean_a) + statistics.variance(b, mean_b)) / 2
    if variance == 0:
        return True
    t = (mean_a - mean_b) / math.sqrt(2 * variance / len(a))
    return abs(t) >= _pyperf_critical(2 * len(a) - 2)


def _pyperf_critical(degrees_of_freedom: int) -> float:
    """pyperf's table: Student's 95 % point at the next lower degrees of freedom it lists, to three digits."""
    if degrees_of_freedom >= 200:
        return round(float(special.ndtri(0.5 + CONFIDENCE / 2)), 3)
    listed = max((row for row in (30, 40, 50, 60, 80, 100) if row <= degrees_of_freedom), default=degrees_of_freedom)
    return round(t_quantile(listed), 3)


def _direction(ratio: float) -> Alarm | None:
    """Of the times, B over A."""
    if ratio == 1:
        return None
    return "slower" if ratio > 1 else "faster"


def _pooled(trials: Trials) -> list[float]:
    values = [value for windows in trials for value in windows]
    if not values:
        raise HarnessError("a side has no windows: nothing to compare")
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise HarnessError(f"a window's step time is {value} s: expected a finite number above 0")
    return values


def rules_of(run: Run) -> list[Rule]:
    """What every rule says of every decision of a validation, by cell and what was planted."""
    return [rule for same in grouped(decisions_of(run.manifest, run.trials)) for rule in _rules(same)]


def _rules(same: Sequence[Decided]) -> list[Rule]:
    """Every tool's rule on these decisions; for A/A also as its users measure, one side after the other."""
    judged = [decided for decided in same if len(decided.pairs) >= 2]  # the windows of one pair are too few for asv
    turns = [_sides(decided) for decided in judged]
    made = [_rule(rule, same[0], turns) for rule in RULES]
    if same[0].plant is None:
        apart = [_of_one_size(_sides(first)[0], _sides(second)[1]) for first, second in of_two_rounds(judged)]
        made += [_rule(rule, same[0], apart, apart=True) for rule in RULES]
    return made


def _sides(decided: Decided) -> tuple[Trials, Trials]:
    return [_step_times(pair.a) for pair in decided.pairs], [_step_times(pair.b) for pair in decided.pairs]


def _of_one_size(a: Trials, b: Trials) -> tuple[Trials, Trials]:
    """As many trials of as many windows on both sides, which those who measure by a tool see to themselves."""
    trials, windows = min(len(a), len(b)), min(len(trial) for trial in [*a, *b])
    return [trial[:windows] for trial in a[:trials]], [trial[:windows] for trial in b[:trials]]


def _rule(rule: ToolRule, one: Decided, sides: Sequence[tuple[Trials, Trials]], apart: bool = False) -> Rule:
    alarms = [rule.alarm(a, b) for a, b in sides]
    raised = sum(alarm is not None if one.plant is None else alarm == "slower" for alarm in alarms)
    return Rule(
        tool=rule.name,
        rule=rule.words,
        cell_id=one.cell.cell_id,
        plant=one.plant.kind if one.plant else None,
        share=one.plant.share if one.plant else 0.0,
        apart=apart,
        alarms=clopper_pearson(raised, len(alarms)),
    )


def _step_times(trial: TrialRecord) -> list[float]:
    """Seconds a step of each measured window."""
    assert trial.windows is not None
    return [s / trial.windows.steps_per_window for s in trial.windows.seconds[trial.windows.measured_from :]]


def main() -> None:
    """Print the table of the runs named, all their decisions together."""
    folders = list(map(Path, sys.argv[1:])) or sorted(path.parent for path in KEPT.glob("*/run.json"))
    runs = [load_run(folder) for folder in folders]
    records = [validation_of(run) for run in runs]
    together = records[0].model_copy(
        update={
            "effects": [effect for record in records for effect in record.effects],
            "floors": [floor for record in records for floor in record.floors],
            "rules": [rule for run in runs for rule in rules_of(run)],
        }
    )
    print(table_text(tools_table(together)), end="")


if __name__ == "__main__":
    main()
