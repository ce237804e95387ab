"""Several workloads in one table: what is fastest of each, and how much of it is known."""

from harness.analysis import RunSummary, WorkloadSummary
from harness.report.tables.table import Head, Table
from harness.report.words.headline import few_words, nothing_compared, throughput_words, without_strategy
from harness.report.words.text import NOTHING, listed, plus_minus, sentence, significant
from harness.visible import plural, printable

FEW = 3
"""Workloads whose answers are read one after the other."""


def overview_table(summary: RunSummary) -> Table:
    """A row for each workload; none where there are few."""
    works = summary.workloads if len(summary.workloads) > FEW else ()
    columns = (
        Head("work", False),
        Head("cells that ended well", False),
        Head("fastest", False),
        Head("its throughput"),
        Head("best that distributes", False),
    )
    few = dict.fromkeys(few_words(work) for work in works if nothing_compared(work))
    reasons = [*([] if summary.judged else ["before the sweep's end"]), *(f"with {one}" for one in few)]
    told = sentence(f"{listed(reasons)} the fastest is only the highest.") if works and reasons else ""
    return Table(f"{plural(len(works), 'answer')} at a glance", columns, tuple(map(_row, works)), told)


def _row(work: WorkloadSummary) -> tuple[str, ...]:
    proved = f"{sum(cell.trials.status == 'ok' for cell in work.cells)} of {len(work.cells)}"
    name, answer = printable(work.workload.label), work.answer
    if not work.ranking:
        return name, proved, NOTHING, NOTHING, NOTHING
    best = work.ranking[0]
    gain = NOTHING
    if answer.speed_up is not None:
        known = f"{plus_minus(answer.speed_up)} " if answer.speed_up.known else ""
        distributed = next(cell.label for cell in work.ranking if cell.cell_id == answer.best_distributed_id)
        gain = f"{distributed}: {significant(answer.speed_up.value)}× {known}{without_strategy(work)}"
    return name, proved, printable(best.label), throughput_words(best), printable(gain)
