"""A run of faults as JSON, for other programs."""

from typing import Any

from harness.analysis.faults import FaultsSummary
from harness.report.faults.page import faults_lines
from harness.report.values import plain


def faults_json(summary: FaultsSummary) -> dict[str, Any]:
    """The summary for other programs; intervals and spreads as objects, cells by their id and label."""
    return {**plain(summary), "findings": list(faults_lines(summary))}
