"""Sections of figures with their tables: what was measured."""

from dataclasses import replace

from harness.analysis import WorkloadSummary
from harness.analysis.batch import batch_curves
from harness.analysis.collectives import collective_groups
from harness.analysis.comparison.margins import choose_margins
from harness.analysis.estimates.verdict import Margins
from harness.analysis.gpus import clock_readings
from harness.analysis.limits import CellRate, cell_rates
from harness.analysis.pipelines import fed_models
from harness.analysis.ranking import references_of
from harness.analysis.workers import step_times
from harness.errors import UsageError
from harness.report.figures import (
    Picture,
    batch_figure,
    clocks_figure,
    collective_figure,
    efficiency_figure,
    network_figure,
    ops_figure,
    phases_figure,
    ranking_figure,
    roofline_figure,
    steps_figure,
    throughput_figure,
    workers_figure,
)
from harness.report.figures.curves import scaling_word
from harness.report.figures.ranking import GLANCE
from harness.report.limits import rates_table, rates_words, uncounted
from harness.report.page.sections.base import PageSource, Part, Section, by_workload
from harness.report.tables.collectives import group_table, group_title, latency_table, most_of
from harness.report.tables.engines import engines_table
from harness.report.tables.network import network_table
from harness.report.tables.pipelines import stages_table
from harness.report.tables.sweep import (
    batch_table,
    ops_table,
    phases_table,
    ranking_table,
    scaling_table,
    steps_table,
    unproved_table,
    with_joules,
)
from harness.report.tables.table import Table
from harness.report.words.text import bounds_now, listed, seconds, significant, size
from harness.visible import plural, printable

_MOST_SAME = 6
_LONG = 30
"""Rows from which a table is folded, for the figure above it says what matters."""


def ranking(source: PageSource) -> Section | None:
    """Every ok cell, the fastest first, and the unproved ones that are left out."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        ranked = ranking_table(work, source.summary.noise, source.validation, _rates(source, work))
        beside = stages_table(work), engines_table(work), unproved_table(work)
        fed = bool(fed_models(work))
        if len(work.ranking) == 1 and not fed and not with_joules(work):
            return _part(slug, (), ranked, *beside, words=(_of_one(work),), folded=True)
        # of so few cells the figure beside the answer has all, but for another figure that is there of inputs
        few = 1 < len(work.ranking) <= GLANCE and not fed
        figure = None if few else ranking_figure(work, slug)
        return _part(slug, (figure,), ranked, *beside, open_table=True)

    return by_workload(source, "ranking", "Ranking", part)


def _of_one(work: WorkloadSummary) -> str:
    """What the table's one row says."""
    [cell] = work.ranking
    assert cell.measured is not None
    found, quantity = cell.measured, work.workload.quantity
    memory = f", {size(found.peak_memory_bytes)} of memory at most" if found.peak_memory_bytes else ""
    return printable(
        f"One cell {'could be proved' if work.unranked else 'was measured'}, so there is nothing to rank: {cell.label} "
        f"does {significant(found.throughput.value)} {quantity.unit}, {bounds_now(found.throughput)}; "
        f"{seconds(found.step_time_s.value)} a step, {seconds(found.cpu_seconds_each)} of CPU {quantity.each}{memory}; "
        f"{plural(found.trials, 'trial')}."
    )


def collectives(source: PageSource) -> Section | None:
    """See `collective_parts`."""
    parts = collective_parts(source)
    return Section("collectives", "Collectives", "figures.html.j2", parts) if parts else None


def collective_parts(source: PageSource) -> tuple[Part, ...]:
    """Time and bandwidth of each collective in each size, and what the sizes have in common."""
    limits, launcher = source.limits, source.manifest.sweep.launcher
    parts = [
        _part(
            f"collectives-{number}",
            (collective_figure(group, f"collectives-{number}-figure", most_of(group, limits, launcher)),),
            group_table(group, source.summary),
            heading=group_title(group),
            open_table=True,
        )
        for number, group in enumerate(collective_groups(source.summary))
    ]
    parts.append(_part("collectives-latency", (), latency_table(source.summary), open_table=True))
    return tuple(part for part in parts if part is not None)


def scaling(source: PageSource) -> Section | None:
    """Throughput and efficiency against replicas."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        efficiency = efficiency_figure(work, f"{slug}-e", source.overlay)
        if efficiency is not None:
            efficiency = replace(efficiency, overlay_shown=source.overlay is not None)
        figures = throughput_figure(work, f"{slug}-t"), efficiency
        fixed = "the batch of a replica is fixed, and the global batch grows with the replicas"
        if work.workload.get("batch_scope") == "global":
            fixed = "the global batch is fixed, and the replicas share it out"
        return _part(slug, figures, scaling_table(work), words=(f"{scaling_word(work)}: {fixed}.",))

    return by_workload(source, "scaling", "Scaling", part)


def time(source: PageSource) -> Section | None:
    """Where a trial's time goes, and how long a step takes."""
    times = step_times(source.trials)

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        own = {cell.cell_id for cell in work.cells}
        figures = (
            phases_figure(work, f"{slug}-phases"),
            steps_figure(work, times, f"{slug}-steps"),
            workers_figure(work, times, f"{slug}-workers"),
            clocks_figure(clock_readings([trial for trial in source.trials if trial.cell_id in own]), f"{slug}-clocks"),
        )
        return _part(slug, figures, phases_table(work), steps_table(work, times))

    return by_workload(source, "time", "Where the time goes", part)


def limits(source: PageSource) -> Section | None:
    """How far each cell is from what the machine can do at most, where `doctor --limits` measured that."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        rates = _rates(source, work)
        words = tuple(filter(None, (rates_words(rates), uncounted(work.cells, rates))))
        return _part(slug, (roofline_figure(rates, slug),), rates_table(rates), words=words)

    return by_workload(source, "limits", "How far from the limit", part)


def _rates(source: PageSource, work: WorkloadSummary) -> list[CellRate]:
    """None where nobody measured the machine's limits."""
    return [] if source.limits is None else cell_rates(work.cells, source.limits, source.manifest.sweep.launcher)


def batch(source: PageSource) -> Section | None:
    """Throughput and memory against batch size."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        cells = [cell.trials for cell in work.cells]
        curves = batch_curves(cells, references_of(cells), work.judged)
        return _part(slug, (batch_figure(work, curves, slug),), batch_table(curves))

    return by_workload(source, "batch", "Batch size", part)


def margins_of_ops(source: PageSource) -> tuple[Margins, tuple[str, ...]]:
    """What ops are judged by, and why those are the usual ones where the machine's own cannot be used."""
    try:
        return choose_margins(source.validation, unpaired=False, of_ones_own="give compare a --delta"), ()
    except UsageError as error:  # a page has all else to say
        return Margins(), (f"Judged by the default margins: {error}.",)


def ops(source: PageSource) -> Section | None:
    """Cross-device ops side by side, and cells that were the same experiment."""
    margins, unusable = margins_of_ops(source)

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        same = any(cell.same_experiment_as for cell in work.cells)
        figure, table = ops_figure(work, slug, margins), ops_table(work, margins)
        return _part(slug, (figure,), table, open_table=True, words=(*unusable, *_same(work)), alone=same)

    return by_workload(source, "ops", "Cross-device ops side by side", part)


def network(source: PageSource) -> Section | None:
    """Efficiency against the speed of an emulated network."""

    def part(work: WorkloadSummary, slug: str) -> Part | None:
        return _part(slug, (network_figure(work, slug),), network_table(work))

    return by_workload(source, "network", "Speed of the network", part)


def _same(work: WorkloadSummary) -> tuple[str, ...]:
    """One sentence for each set of cells whose traced program is the same."""
    by_id = {cell.cell_id: cell for cell in work.cells}
    sets: dict[frozenset[str], list[str]] = {}
    for cell in work.cells:
        if cell.same_experiment_as:
            sets.setdefault(frozenset((cell.cell_id, *cell.same_experiment_as)), []).append(cell.label)
    sentences = [
        f"{listed(map(printable, labels), most=6)} were the same experiment: the traced program is the same "
        f"(fingerprint {printable(next(by_id[one].trials.executed.fingerprint for one in sorted(same)))})."
        for same, labels in sets.items()
    ]
    if len(sentences) > _MOST_SAME:
        more = len(sentences) - _MOST_SAME
        sentences = [*sentences[:_MOST_SAME], f"{more} more such sets are in the table, under 'same experiment as'."]
    if not sentences and work.ops and any(cell.trials.executed.fingerprint for cell in work.cells):
        return ("No two cells were the same experiment.",)  # though one program may run beside other settings
    return tuple(sentences)


def _part(
    slug: str,
    figures: tuple[Picture | None, ...],
    *tables: Table,
    heading: str = "",
    open_table: bool = False,
    words: tuple[str, ...] = (),
    alone: bool = False,
    folded: bool = False,
) -> Part | None:
    """None without a table or figure, unless the words stand alone. Without a figure the first table is open, unless
    it is to be `folded`."""
    filled = tuple(table for table in tables if table.rows)
    pictures = tuple(figure for figure in figures if figure is not None)
    if not filled and not pictures and not alone:
        return None
    short = bool(filled) and len(filled[0].rows) <= _LONG
    return Part(slug, heading, words, pictures, filled, (open_table and short) or not (pictures or folded))
