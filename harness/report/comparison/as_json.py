"""A comparison as JSON: `docs/records.md` explains the keys. Shares and ratios are numbers, 0.01 is 1 %."""

from dataclasses import dataclass
from typing import Any

from harness.analysis.cells import CellTrials
from harness.analysis.comparison import Comparison, Row
from harness.report.comparison.base import Renderer, Surface
from harness.report.values import Keys, document, each, ends, value_at
from harness.spec.quantity import EXAMPLES
from harness.visible import json_text

_WALL = "verdicts.wall"
SIDE: Keys = {
    "cell_id": "",
    "label": "cell.label",
    "status": "",
    "trials": "",
    EXAMPLES.throughput_key: "measured.throughput.value",
    "throughput_ci95": ends("measured.throughput"),
    EXAMPLES.cpu_key: "measured.cpu_seconds_each",
    "unproved": "",
}
"""One side of one comparison, by itself; figures are null unless it was measured. `unproved` says what of it is."""

CPU: Keys = {"verdict": "cpu_verdict", "ratio": "cpu_ratio.value", "ci95": ends("cpu_ratio")}
"""The second clock: CPU seconds an example, B over A."""

ROW: Keys = {
    "name": "",
    "verdict": f"{_WALL}.verdict",
    "reason": f"{_WALL}.reason",
    "ratio": f"{_WALL}.ratio.value",
    "ci95": ends(f"{_WALL}.ratio"),
    "ci90": ends(f"{_WALL}.ratio_90"),
    "method": lambda row: value_at(row, f"{_WALL}.estimate.method") or "none",
    "count": lambda row: value_at(row, f"{_WALL}.estimate.count") or 0,
    "noise": f"{_WALL}.noise",
    "p_different": f"{_WALL}.p_different",
    "p_equivalent": f"{_WALL}.p_equivalent",
    "blocks_needed": f"{_WALL}.blocks_needed",
    "cpu": lambda row: document(row.verdicts, CPU) if row.verdicts.cpu_verdict else None,
    "disagreement": "",
    "a": lambda row: _side(row.a),
    "b": lambda row: _side(row.b),
}
"""One comparison. `ratio` is the throughput of B over A: above 1, B is faster."""

COMPARISON: Keys = {
    "schema_version": lambda _: 1,
    "kind": "",
    "a": "title_a",
    "b": "title_b",
    "run_a": lambda whole: whole.manifests[0].run_id,
    "run_b": lambda whole: whole.manifests[1].run_id,
    "changes": "",
    "verdict": "",
    "ratio": lambda whole: _of_only_row(whole, "ratio"),
    "ci95": lambda whole: _of_only_row(whole, "ci95"),
    "noise": lambda whole: _of_only_row(whole, "noise"),
    "blocks": "",
    "delta": "margins.delta",
    "epsilon": "margins.epsilon",
    "margins_source": "margins.source",
    "correction": "",
    "comparisons": lambda whole: sum(row.verdicts.wall.p_different is not None for row in whole.rows),
    "rows": each("rows", ROW),
    "only_a": "",
    "only_b": "",
    "validation": "validation.run_id",
    "remarks": "",
}
"""The whole. `ratio`, `ci95` and `noise` are those of the only row, null where there are several."""


@dataclass(frozen=True)
class _Json:
    name: str = "json"
    suffix: str = ".json"

    def render(self, comparison: Comparison, surface: Surface) -> str:
        """See Renderer."""
        return json_text(comparison_json(comparison), allow_nan=False)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison by its documented keys."""
    return document(comparison, COMPARISON)


def _side(side: CellTrials) -> dict[str, Any]:
    """Its figures under the keys of what its work is counted in."""
    return {side.cell.work.quantity.worded(key): value for key, value in document(side, SIDE).items()}


def _of_only_row(comparison: Comparison, key: str) -> Any:
    rows: tuple[Row, ...] = comparison.rows
    return document(rows[0], {key: ROW[key]})[key] if len(rows) == 1 else None


RENDERER: Renderer = _Json()
