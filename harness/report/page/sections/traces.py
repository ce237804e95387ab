"""Profiles of a few steps, where the sweep took them."""

from dataclasses import dataclass

from harness.report.page.sections.base import PageSource, Section
from harness.report.words.traces import TraceRow, tensorboard, trace_rows


@dataclass(frozen=True)
class Traces:
    """Traced trials, and the command that opens their traces."""

    rows: tuple[TraceRow, ...]
    command: str


def traces(source: PageSource) -> Section | None:
    """Every traced trial with a link to its trace."""
    rows = trace_rows(source.trials, source.run_folder or f"../results/{source.manifest.run_id}")
    if not rows:
        return None
    command = tensorboard(f"{source.place}/traces")
    return Section("traces", "Traces", "traces.html.j2", Traces(rows, command))
