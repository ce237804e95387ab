"""The same decision by other tools' own rules, on the same windows.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from scipy import special, stats

from harness.analysis.estimates.intervals import CONFIDENCE, t_quantile
from harness.errors import HarnessError

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
        ratio = statistics.mean(values_b) / statistics.mean(values_a)
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
    variance = (statistics.variance(a) + statistics.variance(b)) / 2
    if variance == 0:
        return True
    t = (statistics.mean(a) - statistics.mean(b)) / math.sqrt(2 * variance / len(a))
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
