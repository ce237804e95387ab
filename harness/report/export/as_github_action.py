"""The arrays of github-action-benchmark: `customBiggerIsBetter`, examples/s, and `customSmallerIsBetter`, s/step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis import CellSummary, Interval, summarise
from harness.record.reading import Run
from harness.report.export.base import Exporter, deliver, measured_cells
from harness.report.words.text import OWN_INTERVAL, bounds
from harness.spec.quantity import EXAMPLES
from harness.visible import json_text


@dataclass(frozen=True)
class Action:
    """One of the two ways round."""

    name: str
    unit: str
    summary: str
    suffix: str = ".json"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        cells = measured_cells(summarise(run.manifest, run.trials, run.rank_unproved), self.name)
        entries = [self._entry(cell, run) for cell in cells]
        return deliver(json_text(entries, 1, allow_nan=False), target)

    def _entry(self, cell: CellSummary, run: Run) -> dict[str, Any]:
        assert cell.measured is not None
        of = cell.trials.cell
        value = cell.measured.throughput if self.unit == EXAMPLES.unit else cell.measured.step_time_s
        entry = {"name": of.full_name, "unit": of.work.quantity.worded(self.unit), "value": value.value}
        if value.low is not None and value.high is not None:
            # The action reads a number after ±, in the unit of the value; the interval itself is in `extra`.
            entry["range"] = f"± {(value.high - value.low) / 2:.6g}"
        return {**entry, "extra": _extra(cell, value, run)}


def _extra(cell: CellSummary, value: Interval, run: Run) -> str:
    interval = "no interval: one trial" if value.low is None else f"{OWN_INTERVAL} {bounds(value)}"
    lines = [f"{interval}, {value.count} trials", f"cell {cell.cell_id}", f"run {run.manifest.run_id}"]
    lines += [] if cell.trials.unproved is None else [f"unproved: {cell.trials.unproved}"]
    revision = run.manifest.facts.get("git.revision")
    return "\n".join([*lines, *([f"commit {revision}"] if revision else [])])


_FOR = "for github-action-benchmark, tool"
EXPORTERS: tuple[Exporter, ...] = (
    Action("github-action-bigger", EXAMPLES.unit, f"{_FOR} customBiggerIsBetter: examples a second"),
    Action("github-action-smaller", "s/step", f"{_FOR} customSmallerIsBetter: seconds a step"),
)
