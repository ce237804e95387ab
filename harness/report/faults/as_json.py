"""A run of faults as JSON, for other programs."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from harness.analysis.faults import FaultsSummary
from harness.report.faults.page import faults_lines
from harness.spec.cell import Cell


def faults_json(summary: FaultsSummary) -> dict[str, Any]:
    """The summary for other programs; intervals and spreads as objects, cells by their id and label."""

    def plain(value: Any) -> Any:
        if isinstance(value, Cell):
            return {"cell_id": value.cell_id, "label": value.label, "strategy": value.strategy}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    whole: dict[str, Any] = plain(summary)
    return {**whole, "findings": list(faults_lines(summary))}
