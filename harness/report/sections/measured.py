"""Sections of figures with their tables: what was measured."""

from harness.analysis import WorkloadSummary
from harness.report.figures import (
    Picture,
    efficiency_figure,
    ops_figure,
    phases_figure,
    ranking_figure,
    throughput_figure,
)
from harness.report.sections.base import Part, Section, Source, by_workload
from harness.report.table import Table, ops_table, phases_table, ranking_table, scaling_table


def ranking(source: Source) -> Section | None:
    """Every ok cell, the fastest first."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        return _part(slug, (ranking_figure(work, slug),), ranking_table(work), open_table=True)

    return by_workload(source, "ranking", "Ranking", part)


def scaling(source: Source) -> Section | None:
    """Throughput and efficiency against replicas."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        figures = throughput_figure(work, f"{slug}-t"), efficiency_figure(work, f"{slug}-e")
        return _part(slug, figures, scaling_table(work))

    return by_workload(source, "scaling", "Scaling", part)


def phases(source: Source) -> Section | None:
    """Where a trial's time goes."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        return _part(slug, (phases_figure(work, slug),), phases_table(work))

    return by_workload(source, "time", "Where the time goes", part)


def ops(source: Source) -> Section | None:
    """Cross-device ops side by side."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        return _part(slug, (ops_figure(work, slug),), ops_table(work), open_table=True)

    return by_workload(source, "ops", "Cross-device ops side by side", part)


def _part(slug: str, figures: tuple[Picture | None, ...], table: Table, *, open_table: bool = False) -> Part | None:
    if not table.rows:
        return None
    pictures = tuple(figure for figure in figures if figure is not None)
    return Part(slug, "", (), pictures, table, open_table or not pictures)
