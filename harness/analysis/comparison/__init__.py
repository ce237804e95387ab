"""Comparisons: two runs, one run along an axis, or the two sides of an `ab` run, each with its verdict.

The verdicts are those of `verdict.py`, by both clocks (`clocks.py`), and judged together: the
p-values of all rows are adjusted at once, for wall time and for processor time separately.
"""

from harness.analysis.comparison.ab import comparison_of_ab
from harness.analysis.comparison.margins import choose_margins, parse_share
from harness.analysis.comparison.result import Comparison, Row
from harness.analysis.comparison.runs import compare_along, compare_runs

__all__ = [
    "Comparison",
    "Row",
    "choose_margins",
    "compare_along",
    "compare_runs",
    "comparison_of_ab",
    "parse_share",
]
