"""Sections of figures with their tables: what was measured."""

from harness.analysis import WorkloadSummary
from harness.analysis.batch import batch_curves
from harness.analysis.ranking import references_of
from harness.analysis.workers import step_times
from harness.report.figures import (
    Picture,
    batch_figure,
    efficiency_figure,
    ops_figure,
    phases_figure,
    ranking_figure,
    steps_figure,
    throughput_figure,
    workers_figure,
)
from harness.report.sections.base import Part, Section, Source, by_workload
from harness.report.table import Table, batch_table, ops_table, phases_table, ranking_table, scaling_table, steps_table


def ranking(source: Source) -> Section | None:
    """Every ok cell, the fastest first."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        return _part(slug, (ranking_figure(work, slug),), ranking_table(work), open_table=True)

    return by_workload(source, "ranking", "Ranking", part)


def scaling(source: Source) -> Section | None:
    """Throughput and efficiency against replicas."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        figures = throughput_figure(work, f"{slug}-t"), efficiency_figure(work, f"{slug}-e", source.overlay)
        return _part(slug, figures, scaling_table(work))

    return by_workload(source, "scaling", "Scaling", part)


def time(source: Source) -> Section | None:
    """Where a trial's time goes, and how long a step takes."""
    times = step_times(source.trials)

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        figures = (
            phases_figure(work, f"{slug}-phases"),
            steps_figure(work, times, f"{slug}-steps"),
            workers_figure(work, times, f"{slug}-workers"),
        )
        return _part(slug, figures, phases_table(work), steps_table(work, times))

    return by_workload(source, "time", "Where the time goes", part)


def batch(source: Source) -> Section | None:
    """Throughput and memory against batch size."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        cells = [cell.trials for cell in work.cells]
        curves = batch_curves(cells, references_of(cells))
        return _part(slug, (batch_figure(work, curves, slug),), batch_table(curves))

    return by_workload(source, "batch", "Batch size", part)


def ops(source: Source) -> Section | None:
    """Cross-device ops side by side."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        return _part(slug, (ops_figure(work, slug),), ops_table(work), open_table=True)

    return by_workload(source, "ops", "Cross-device ops side by side", part)


def _part(
    slug: str, figures: tuple[Picture | None, ...], *tables: Table, heading: str = "", open_table: bool = False,
    words: tuple[str, ...] = (),
) -> Part | None:  # fmt: skip
    filled = tuple(table for table in tables if table.rows)
    if not filled:
        return None
    pictures = tuple(figure for figure in figures if figure is not None)
    return Part(slug, heading, words, pictures, filled, open_table or not pictures)
