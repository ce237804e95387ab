"""Work that is told by lines of its own, and not as a ranking of ways to distribute a training."""

from collections.abc import Callable, Sequence

from harness.analysis import RunSummary, WorkloadSummary
from harness.analysis.collectives import of_collectives
from harness.report.words.collectives import collective_lines
from harness.report.words.pipelines import pipeline_lines, ranked_models


def _is_fed(work: WorkloadSummary) -> bool:
    """Whether it is of a ranked input that was measured beside its model; else it is told as all other work."""
    return bool(ranked_models(work))


_OWN: tuple[tuple[Callable[[WorkloadSummary], bool], Callable[[RunSummary], Sequence[str]]], ...] = (
    (of_collectives, collective_lines),
    (_is_fed, pipeline_lines),
)


def own_lines(summary: RunSummary) -> Sequence[str] | None:
    """The lines of a run all of whose work has such; None of any other."""
    return next((lines(summary) for of, lines in _OWN if all(map(of, summary.workloads))), None)
