"""Durable writes: how long they take."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from harness.record.disk import DiskWrite
from harness.record.log import load_records
from harness.record.reading import Run, RunListing
from harness.report.kinds.base import PageRequest, Presentation
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.report.comparison import Surface
    from harness.report.export.base import Exporter, RunData


def lines_of(writes: list[DiskWrite]) -> list[str]:
    if not writes:
        return ["Nothing was written yet."]
    seconds = [write.seconds for write in writes]
    return [f"A durable write takes {1e3 * median(seconds):.1f} ms, the longest {1e3 * max(seconds):.1f} ms."]


@dataclass(frozen=True)
class Csv:
    name: str = "csv"
    summary: str = "one row a write"
    suffix: str = ".csv"

    def export(self, run: "RunData", target: Path | None) -> str | None:
        from harness.report.export.base import deliver

        rows = [f"{write.number},{write.seconds}" for write in load_records(DiskWrite, run.path)]
        return deliver("\n".join(["number,seconds", *rows]) + "\n", target)


class Disk(Presentation):
    name = "disk"
    page_kind = "disk"

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        from harness.report.export.base import write
        from harness.report.page.findings import findings_page

        lines = lines_of(load_records(DiskWrite, run.path))
        method = "Each write waits until the disk has it."
        page = findings_page(run.manifest, self.page_kind, "What a durable write costs", lines, [], method)
        write(request.target, page.encode("utf-8", "replace"), "FILE.html")
        return lines

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        return "".join(f"{line}\n" for line in lines_of(load_records(DiskWrite, run.path)))

    def as_json(self, run: Run, results: Path) -> str:
        writes = load_records(DiskWrite, run.path)
        return json_text({"run_id": run.manifest.run_id, "seconds": [write.seconds for write in writes]})

    def exporters(self) -> "Mapping[str, Exporter]":
        return {"csv": Csv()}

    def listed(self, listing: RunListing) -> str:
        return f"{listing.trials:>4} of {listing.planned} writes"


KIND = Disk()
