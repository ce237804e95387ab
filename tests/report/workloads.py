"""Workloads, made up."""

from harness.analysis import WorkloadSummary, summarise
from tests.synthetic import make_run


def workload(*args: object, **kwargs: object) -> WorkloadSummary:
    return summarise(*make_run(*args, **kwargs)).workloads[0]  # type: ignore[arg-type]
