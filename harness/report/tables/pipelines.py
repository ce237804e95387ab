"""Input pipelines stage by stage: what comes out behind each, and what has been spent by then."""

from harness.analysis import WorkloadSummary
from harness.analysis.pipelines import Stage, stages_of
from harness.report.tables.table import Head, Table
from harness.report.words.text import NOTHING, OWN_INTERVAL, bounds, seconds, significant
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
