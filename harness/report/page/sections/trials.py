"""Every trial, in a table that sorts, filters and opens."""

from harness.report.page.sections.base import PageSource, Section
from harness.report.page.trials import trials_section


def trials(source: PageSource) -> Section | None:
    """The table of every trial; None for a run without one."""
    content = trials_section(source.manifest, source.trials, source.place, source.records)
    return Section("trials", "Every trial", "trials.html.j2", content, ("trial.js", "trials.js")) if content else None
