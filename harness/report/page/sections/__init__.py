"""The sections of the report, in the order of the page. A new one is a function and an entry here."""

from harness.report.page.sections.against import base_run
from harness.report.page.sections.base import Make, PageSource, Part, Section
from harness.report.page.sections.figures import (
    batch,
    collective_parts,
    collectives,
    limits,
    network,
    ops,
    ranking,
    scaling,
    time,
)
from harness.report.page.sections.method import environment, method
from harness.report.page.sections.traces import traces
from harness.report.page.sections.trials import trials
from harness.report.page.sections.wrong import left_out, problems

WHAT_WAS_MEASURED: tuple[Make, ...] = (base_run, collectives, ranking, scaling, time, limits)
"""What other runs show comes behind these."""
WHAT_ELSE: tuple[Make, ...] = (
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


def sections_of(source: PageSource) -> list[Section]:
    """Each that the run has something for."""
    first, last = (
        [section for make in some if (section := make(source)) is not None] for some in (WHAT_WAS_MEASURED, WHAT_ELSE)
    )
    return [*first, *source.others, *last]


__all__ = ["PageSource", "Part", "Section", "collective_parts", "sections_of"]
