"""Input pipelines beside what their models take, and stage by stage: what comes out behind each, and what it takes."""

from collections.abc import Iterator

from harness.analysis import CellSummary, RunSummary, WorkloadSummary, summarise
from harness.analysis.pipelines import FedBy, FedModel, Stage, by_cell, cuts_of, fed_models, stages_of
from harness.errors import UsageError
from harness.record.reading import Run
from harness.report.export.rows import ExportRow, interval_row
from harness.report.tables.table import Head, Table
from harness.report.words.pipelines import LIMITS, name_of
from harness.report.words.text import NOTHING, OWN_INTERVAL, bounds, seconds, significant
from harness.spec.pipeline import PipelineCell
from harness.visible import printable

NOTE = (
    "Each row is the pipeline cut off behind that stage, and the processor time up to there, in passes after the "
    "first: what a cache holds is not made again. Stages work at the same time, so no time of one alone is told: the "
    "slowest sets the rate, and processor time adds up. What is cut off hands on examples one by one, without a batch."
)


def stages_table(work: WorkloadSummary) -> Table:
    """Of each pipeline that was measured cut off, too; without rows where none was."""
    quantity = work.workload.quantity
    columns = (
        Head("input", False),
        Head("up to", False),
        Head(quantity.unit),
        Head(OWN_INTERVAL),
        Head(f"CPU/{quantity.one}"),
    )
    rows = tuple(tuple(map(printable, _row(stage))) for stage in stages_of(work))
    return Table("By stage", columns, rows, NOTE if rows else "")


def _row(stage: Stage) -> tuple[str, ...]:
    each = NOTHING if stage.cpu_seconds_each is None else seconds(stage.cpu_seconds_each)
    rate = significant(stage.rate.value)
    return stage.pipeline.label, stage.cut or "all of it", rate, bounds(stage.rate), each


def pipeline_rows(run: Run) -> list[ExportRow]:
    """A row a pipeline, as `PIPELINE_COLUMNS` have them, and one a stage that it was also measured cut off behind.
    UsageError on a run without pipelines."""
    rows = rows_of_pipelines(summarise(run.manifest, run.trials, run.rank_unproved))
    if not rows:
        raise UsageError(f"RUN: '{run.manifest.run_id}' has no pipelines; measure some with sweep --work pipeline")
    return rows


def rows_of_pipelines(summary: RunSummary) -> list[ExportRow]:
    """The same of the run's summary; none of a run without pipelines."""
    return [row for work in summary.workloads for row in _work_rows(work)]


def _work_rows(work: WorkloadSummary) -> Iterator[ExportRow]:
    fed = by_cell(fed_models(work))
    for whole, cuts in cuts_of(work):
        yield pipeline_row(whole, *fed.get(whole.cell_id, (None, None)))
        yield from (pipeline_row(one, of=whole) for _, one in cuts)


def pipeline_row(
    one: CellSummary, model: FedModel | None = None, fed: FedBy | None = None, of: CellSummary | None = None
) -> ExportRow:
    """A pipeline beside the model that it feeds, where it was measured what that takes; or what is cut off of one."""
    cell, measured = one.trials.cell, one.measured
    assert isinstance(cell, PipelineCell)
    return {
        "cell_id": one.cell_id,
        "cell": (of or one).label,
        "up_to": cell.cut or None,
        "feeds": name_of(cell.appetite) if of is None and cell.appetite is not None else None,
        "status": one.trials.status,
        "unit": cell.work.quantity.unit,
        **interval_row("input_per_s", None if measured is None else measured.throughput),
        "cpu_seconds_each": measured and measured.cpu_seconds_each,
        **interval_row("model_takes_per_s", None if model is None else model.appetite),
        **interval_row("input_over_model", None if fed is None else fed.headroom),
        "input_is_the_limit": fed and LIMITS.get(fed.limit),
        "processors_to_feed_it": fed and fed.processors,
    }
