"""The sections of the report, in the order of the page. A new one is a function and an entry in `SECTIONS`."""

from harness.report.page.sections.against import base_run
from harness.report.page.sections.base import Make, PageSource, Part, Section
from harness.report.page.sections.figures import batch, collectives, limits, network, ops, ranking, scaling, time
from harness.report.page.sections.method import environment, method
from harness.report.page.sections.traces import traces
from harness.report.page.sections.trials import trials
from harness.report.page.sections.wrong import left_out, problems

SECTIONS: tuple[Make, ...] = (
    base_run,
    collectives,
    ranking,
    scaling,
    time,
    limits,
    batch,
    ops,
    network,
    problems,
    left_out,
    traces,
    trials,
    environment,
    method,
)

__all__ = ["SECTIONS", "Make", "PageSource", "Part", "Section"]
