"""A plain page of a run: what it found in sentences, its tables, how that was measured, and the machine."""

from collections.abc import Sequence

from harness.record.manifest import RunManifest
from harness.report.figures.svg import Picture
from harness.report.page.sections.wrong import left_out_by_reason
from harness.report.page.templating import rendered
from harness.report.tables.table import Table
from harness.visible import printable


def findings_page(
    manifest: RunManifest,
    page_kind: str,
    heading: str,
    lines: Sequence[str],
    tables: Sequence[Table],
    method: str,
    pictures: Sequence[Picture] = (),
    workload: str = "",
) -> str:
    """One self-contained HTML file. The first of `lines` is the headline; `page_kind` is what the index calls it, and
    `workload` what stands above the headline."""
    return rendered(
        "findings.html.j2",
        run=manifest,
        page_kind=page_kind,
        heading=heading,
        workload=workload,
        headline=lines[0],
        lines=lines[1:],
        tables=tables,
        pictures=pictures,
        method=method,
        content=left_out_by_reason(manifest),
        printable=printable,
    )
