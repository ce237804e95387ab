"""A comparison as JSON: stable keys, each documented here. Shares and ratios are numbers, 0.01 is 1 %."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat

from harness.analysis import CellTrials, Interval
from harness.analysis.comparison import Comparison, Row
from harness.analysis.comparison.instruments import CpuVerdict
from harness.analysis.estimates.verdict import Correction, Verdict
from harness.report.comparison.base import Renderer, Surface


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChangeJson(_Part):
    """One way in which the environments differ; `refuse` forbids a comparison without --across-machines."""

    key: str
    a: str | int | float | bool | None
    b: str | int | float | bool | None
    severity: Literal["refuse", "note"]


class SideJson(_Part):
    """One side of one comparison, by itself."""

    cell_id: str
    label: str
    status: str
    """Of the cell: `ok`, `wrong_result`, `crashed`, …, `missing`."""
    trials: int
    """Recorded, however they ended."""
    throughput_examples_per_s: FiniteFloat | None
    """Null unless the cell is ok."""
    throughput_ci95: tuple[FiniteFloat, FiniteFloat] | None
    cpu_seconds_per_example: FiniteFloat | None


class CpuJson(_Part):
    """The second instrument: CPU seconds an example, B over A."""

    verdict: CpuVerdict
    ratio: FiniteFloat | None
    ci95: tuple[FiniteFloat, FiniteFloat] | None


class RowJson(_Part):
    """One comparison. `ratio` is the throughput of B over A: above 1, B is faster."""

    name: str
    verdict: Verdict
    reason: str | None
    """Why it is invalid, or why it cannot be known."""
    ratio: FiniteFloat | None
    ci95: tuple[FiniteFloat, FiniteFloat] | None
    """Null with a single trial or pair."""
    ci90: tuple[FiniteFloat, FiniteFloat] | None
    """What equivalence is judged by."""
    method: str
    """`paired t`, `paired t through the base`, `Stein t`, `Welch t` or `none`."""
    count: int
    """Pairs, or trials of the smaller side."""
    noise: FiniteFloat | None
    """Standard deviation of the log ratio of one pair."""
    p_different: FiniteFloat | None
    p_equivalent: FiniteFloat | None
    """Both adjusted as `correction` says."""
    blocks_needed: int | None
    """When undecided: pairs, or trials a side, that would decide it."""
    cpu: CpuJson | None
    disagreement: str | None
    """What it means that wall time and CPU time differ."""
    a: SideJson
    b: SideJson


class ComparisonJson(_Part):
    """The whole. `ratio`, `ci95` and `noise` are those of the only row, null where there are several."""

    schema_version: Literal[1] = 1
    kind: Literal["runs", "along", "ab"]
    a: str
    b: str
    run_a: str
    run_b: str
    changes: list[ChangeJson]
    verdict: Verdict
    """The worst of the rows; `invalid` only when no row is valid."""
    ratio: FiniteFloat | None
    ci95: tuple[FiniteFloat, FiniteFloat] | None
    noise: FiniteFloat | None
    blocks: int
    """Complete pairs behind an `ab`, 0 else."""
    delta: FiniteFloat
    epsilon: FiniteFloat
    margins_source: str
    correction: Correction
    comparisons: int
    """How many were judged together."""
    rows: list[RowJson]
    only_a: list[str]
    only_b: list[str]
    validation: str | None
    """The run of `validate` on this machine that is relied on."""
    remarks: list[str]


@dataclass(frozen=True)
class _Json:
    name: str = "json"
    suffix: str = ".json"

    def render(self, comparison: Comparison, surface: Surface) -> str:
        """See Renderer."""
        return comparison_json(comparison).model_dump_json(indent=2) + "\n"


def comparison_json(comparison: Comparison) -> ComparisonJson:
    """The comparison by its documented keys; a figure that is not finite is an error, never JSON."""
    rows = [_row(row) for row in comparison.rows]
    only = rows[0] if len(rows) == 1 else None
    manifest_a, manifest_b = comparison.manifests
    return ComparisonJson(
        kind=comparison.kind, a=comparison.title_a, b=comparison.title_b,
        run_a=manifest_a.run_id, run_b=manifest_b.run_id,
        changes=[ChangeJson(**vars(change)) for change in comparison.changes],
        verdict=comparison.verdict,
        ratio=only.ratio if only else None, ci95=only.ci95 if only else None, noise=only.noise if only else None,
        blocks=comparison.blocks, delta=comparison.margins.delta, epsilon=comparison.margins.epsilon,
        margins_source=comparison.margins.source, correction=comparison.correction,
        comparisons=sum(row.verdicts.wall.p_different is not None for row in comparison.rows), rows=rows,
        only_a=list(comparison.only_a), only_b=list(comparison.only_b),
        validation=comparison.validation.run_id if comparison.validation else None,
        remarks=list(comparison.remarks),
    )  # fmt: skip


def _row(row: Row) -> RowJson:
    wall, cpu = row.verdicts.wall, row.verdicts.cpu_verdict
    ratio = row.verdicts.cpu_ratio
    return RowJson(
        name=row.name, verdict=wall.verdict, reason=wall.reason,
        ratio=wall.ratio.value if wall.ratio else None, ci95=_bounds(wall.ratio), ci90=_bounds(wall.ratio_90),
        method=wall.estimate.method if wall.estimate else "none", count=wall.estimate.count if wall.estimate else 0,
        noise=wall.noise, p_different=wall.p_different, p_equivalent=wall.p_equivalent,
        blocks_needed=wall.blocks_needed,
        cpu=CpuJson(verdict=cpu, ratio=ratio.value if ratio else None, ci95=_bounds(ratio)) if cpu else None,
        disagreement=row.verdicts.disagreement, a=_side(row.a), b=_side(row.b),
    )  # fmt: skip


def _side(side: CellTrials) -> SideJson:
    measured = side.measured
    return SideJson(
        cell_id=side.cell_id, label=side.cell.label, status=side.status, trials=side.trials,
        throughput_examples_per_s=measured.throughput.value if measured else None,
        throughput_ci95=_bounds(measured.throughput if measured else None),
        cpu_seconds_per_example=measured.cpu_seconds_per_example if measured else None,
    )  # fmt: skip


def _bounds(interval: Interval | None) -> tuple[float, float] | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high


RENDERER: Renderer = _Json()
